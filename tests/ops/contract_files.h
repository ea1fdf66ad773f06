// The files and the short names of the contract's pipelines.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/support/arrays.h"
#include "tests/support/catch.h"
#include "tests/support/compressed.h"
#include "tests/support/golden.h"
#include "tests/support/pipeline.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/shards.h"
#include "tests/support/stages.h"
#include "tests/support/tar_members.h"

namespace penstock::test {

// SequenceExamples n = 0 … count - 1: `n`, and a list `steps` of n % 5 words.
inline std::vector<std::string> Sequences(int64_t count) {
  const auto field = [](int number, const std::string& bytes) {
    // Tag and length are a byte each.
    return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
  };
  std::vector<std::string> records;
  for (int64_t n = 0; n < count; ++n) {
    std::string steps;
    for (int64_t i = 0; i < n % 5; ++i)
      steps += field(1, field(1, field(1, absl::StrCat("word ", n, " ", i))));
    const std::string lists = field(1, field(1, "steps") + field(2, steps));
    // The context has the bytes of an Example.
    records.push_back(MakeRecord(n, 4) + field(2, lists));
  }
  return records;
}

class ContractFiles {
 public:
  ContractFiles() {
    // Uneven shards, empty ones among them: 64 records.
    const int64_t sizes[] = {5, 0, 13, 1, 40, 0, 5};
    for (int64_t i = 0; i < 7; ++i) {
      const std::string path = folder / absl::StrCat("shard-", i, ".tfrecord");
      WriteShard(path, 1000 + 100 * i,
                 sizes[i]);  // numbers of two bytes: equal sizes for equal counts
      WriteFile(path + ".gz", Gzip(ReadFile(path)));
    }
    // Several chunks, and records that are read late.
    WriteShard(folder / "big.tfrecord", 0, 3000, 40);
    WriteFile(folder / "big.tfrecord.zlib", Zlib(ReadFile(folder / "big.tfrecord")));
    WriteShard(folder / "late.tfrecord", 500, 21, 9000);
    for (int64_t i = 0; i < 3; ++i)
      WriteLists(folder / absl::StrCat("lists-", i, ".tfrecord"), 100 * i, 20 + 17 * i);
    // Enough records for places to be sought by the index instead of gone to.
    const int64_t wide_sizes[] = {5000, 0, 300, 7000};
    for (int64_t i = 0; i < 4; ++i)
      WriteShard(folder / absl::StrCat("wide-", i, ".tfrecord"), 10000 * i, wide_sizes[i]);
    // Damage in the length of one record and in the data of others.
    WriteShard(folder / "hurt-0.tfrecord", 0, 90);
    WriteShard(folder / "hurt-1.tfrecord", 1000, 70);
    for (const size_t offset : {20, 1003, 1400, 3990}) FlipBit(folder / "hurt-0.tfrecord", offset);
    FlipBit(folder / "hurt-1.tfrecord", 2000);
    // Records that are sound, but no Examples.
    std::vector<std::string> mixed;
    for (int64_t n = 0; n < 100; ++n)
      mixed.push_back(n % 9 == 4 || n > 97 ? "\xff no message" : MakeRecord(n, 8));
    WriteRecords(folder / "mixed.tfrecord", mixed);
    WriteRecords(folder / "sequences.tfrecord", Sequences(83));
    std::string lines, pieces;
    for (int i = 0; i < 120; ++i) {
      absl::StrAppend(&lines, "line ", i, std::string(i % 17, 'x'), i % 3 == 0 ? "\r\n" : "\n");
      absl::StrAppend(&pieces, absl::Dec(i, absl::kZeroPad5));
    }
    WriteFile(folder / "lines.txt", lines);
    WriteFile(folder / "more.txt", "the\nlast\nfile");
    WriteFile(folder / "lines.txt.gz", Gzip(lines));
    // Documents, with blank lines, and lines that are none.
    std::string documents, hurt;
    for (int i = 0; i < 90; ++i) {
      const std::string document = absl::StrCat(
          R"({"n": )", i, R"(, "s": ")", std::string(i % 11, 's'), R"(\n", "l": [)",
          i % 4 == 0 ? "" : absl::StrCat(i, ", ", -i), R"(], "user": {"id": )", i * i, "}}");
      absl::StrAppend(&documents, document, i % 5 == 0 ? "\r\n\n" : "\n");
      absl::StrAppend(&hurt, i % 13 == 4 ? document.substr(0, 9) : document, "\n");
    }
    WriteFile(folder / "documents.jsonl", documents);
    WriteFile(folder / "documents.jsonl.gz", Gzip(documents));
    WriteFile(folder / "hurt.jsonl", hurt);
    WriteFile(folder / "pieces.bin", "head" + pieces + "feet!");
    for (const int file : {0, 1}) {
      std::vector<std::pair<std::string, std::string>> members;
      for (int i = 0; i < 50 + 9 * file; ++i) {
        const std::string key = absl::StrCat("folder/", file, "-", i);
        // Some are long, and stay in the file.
        members.emplace_back(key + ".JPG", std::string(i % 16 == 3 ? 9000 : i * 37 % 1000, 'j'));
        if (i % 5 != 1) members.emplace_back(key + ".cls", absl::StrCat(i));
      }
      std::string tar = TarArchive(members);
      WriteFile(folder / absl::StrCat("samples-", file, ".tar.gz"), Gzip(tar));
      WriteFile(folder / absl::StrCat("samples-", file, ".tar"), tar);
      tar[5 * kTarBlockBytes + 3] ^= 1;
      WriteFile(folder / absl::StrCat("damaged-", file, ".tar"), tar);
    }
    // Of several batches, and a stream that was cut within its last one.
    for (const char* name : {"numbers", "lists_nulls", "structs_nulls", "texts_zstd"}) {
      WriteFile(folder / absl::StrCat(name, ".arrow"),
                testing::ReadGolden(absl::StrCat("arrow/", name, ".arrow")));
    }
    for (const char* name : {"few_none_v1", "few_zstd_v2", "pages_v1"}) {
      WriteFile(folder / absl::StrCat(name, ".parquet"),
                testing::ReadGolden(absl::StrCat("parquet/", name, ".parquet")));
    }
    const std::string stream = testing::ReadGolden("arrow/numbers_stream.arrow");
    WriteFile(folder / "cut.arrows", stream.substr(0, stream.size() - 200));
    std::string numbers = NpyHeaderText("<i8", "(300, 2)");
    for (int64_t i = 0; i < 600; ++i) numbers.append(reinterpret_cast<const char*>(&i), sizeof(i));
    WriteFile(folder / "numbers.npy", numbers);
    std::string texts = NpyHeaderText("|S3", "(300,)");
    for (int i = 0; i < 300; ++i) texts += absl::StrCat(absl::Dec(i, absl::kZeroPad3));
    WriteFile(folder / "texts.npy", texts);
  }

  // The text of a spec, of the short form of stages.h.
  std::string Spec(const std::string& text) const {
    std::string slices = "from_tensor_slices { tensor { name: 'x'";
    for (int i = 0; i < 40; ++i) absl::StrAppend(&slices, " int_value: ", i * i);
    absl::StrAppend(&slices, " } tensor { name: 's'");
    for (int i = 0; i < 40; ++i)
      absl::StrAppend(&slices, " string_value: '", std::string(i % 7, 'y'), i, "'");
    slices += " } }";
    const std::string stages = absl::StrReplaceAll(
        text,
        {
            {"$RANGE", "range { stop: 101 }"},
            {"$SHARDS", "tfrecord { files: 'FOLDER/shard-*.tfrecord' }"},
            {"$TURNS",
             "tfrecord { files: 'FOLDER/shard-*.tfrecord' cycle_length: 3 block_length: 2 }"},
            {"$BIG", "tfrecord { files: 'FOLDER/big.tfrecord' }"},
            {"$WIDE",
             "tfrecord { files: 'FOLDER/wide-*.tfrecord' cycle_length: 3 block_length: 2 }"},
            {"$HURT",
             "tfrecord { files: 'FOLDER/hurt-*.tfrecord' cycle_length: 2 damage { on_damage: "
             "SKIP_RECORD } }"},
            {"$CUT_SHORT",
             "tfrecord { files: 'FOLDER/hurt-*.tfrecord' damage { on_damage: SKIP_SHARD } }"},
            {"$MIXED", "tfrecord { files: 'FOLDER/mixed.tfrecord' }"},
            {"$LATE", "tfrecord { files: 'FOLDER/late.tfrecord' }"},
            {"$GZIP_LINES", "text_line { files: 'FOLDER/lines.txt.gz' compression: 'GZIP' }"},
            {"$GZIP",
             "tfrecord { files: 'FOLDER/shard-*.tfrecord.gz' compression: 'GZIP' "
             "cycle_length: 2 }"},
            {"$ZLIB", "tfrecord { files: 'FOLDER/big.tfrecord.zlib' compression: 'ZLIB' }"},
            {"$LISTS",
             "tfrecord { files: 'FOLDER/lists-*.tfrecord' cycle_length: 2 } | parse_example "
             "{ feature { key: 'n' int64 {} } feature { key: 'ints' int64 { "
             "variable_length: true } } feature { key: 'floats' float { variable_length: "
             "true } } feature { key: 'words' bytes { variable_length: true } } }"},
            {"$SEQUENCES", "tfrecord { files: 'FOLDER/sequences.tfrecord' }"},
            {"$STEPS",
             "parse_sequence_example { context { key: 'n' int64 {} } sequence { key: 'steps' "
             "sequence { dtype: 'string' } } }"},
            {"$DOCUMENTS", "json_lines { files: 'FOLDER/documents.jsonl' }"},
            {"$GZIP_DOCUMENTS", "json_lines { files: 'FOLDER/documents.jsonl.gz' }"},
            {"$HURT_DOCUMENTS",
             "json_lines { files: 'FOLDER/hurt.jsonl' files: 'FOLDER/documents.jsonl' "
             "cycle_length: 2 damage { on_damage: SKIP_RECORD } }"},
            {"$CUT_DOCUMENTS",
             "json_lines { files: 'FOLDER/*.jsonl' damage { on_damage: SKIP_SHARD } }"},
            {"$DECODE",
             "decode_json { feature { name: 'n' dtype: 'int64' } feature { name: 's' dtype: "
             "'string' } feature { name: 'l' dtype: 'int64' shape: -1 } feature { name: "
             "'user.id' dtype: 'float32' default_value { floats: 0.5 } } }"},
            {"$LINES", "text_line { files: 'FOLDER/*.txt' }"},
            {"$PIECES",
             "fixed_length_record { files: 'FOLDER/pieces.bin' record_bytes: 5 header_bytes: "
             "4 footer_bytes: 5 }"},
            {"$TAR_FEATURES",
             "feature { name: 'image' extension: 'png' extension: 'jpg' } feature { "
             "extension: 'cls' default_value: '-' } feature { extension: '__key__' }"},
            {"$ARROW", "arrow { files: 'FOLDER/numbers.arrow' files: 'FOLDER/numbers.arrow' }"},
            {"$NESTED_ARROW",
             "arrow { files: 'FOLDER/lists_nulls.arrow' feature { name: 'l' default_value { "
             "ints: 7 } allow_missing: true } feature { name: 'f' shape: 2 default_value { "
             "floats: 0.5 } } feature { name: 's' default_value { strings: '?' } "
             "allow_missing: true } }"},
            {"$PARQUET",
             "parquet { files: 'FOLDER/few_none_v1.parquet' files: 'FOLDER/few_zstd_v2.parquet' "
             "feature { name: 'x' default_value { ints: -1 } } feature { name: 's' } feature { "
             "name: 'no' column: 'x' is_null: true } }"},
            {"$LIST", "list_files { files: 'FOLDER/*-?.tfrecord' seed: 7 }"},
            {"$WHOLE", "files { files: 'FOLDER/*-?.tfrecord' class_from_folder: true }"},
            {"$SLICES", slices},
            {"$NPY",
             "from_tensor_slices { tensor { name: 'x' npy: 'FOLDER/numbers.npy' } tensor { "
             "name: 's' npy: 'FOLDER/texts.npy' } }"},
            {"$PARSE",
             "parse_example { feature { key: 'n' int64 {} } feature { key: 'd' bytes {} } }"},
        });
    return absl::StrReplaceAll(Stages(stages), {{"FOLDER", folder.path()}});
  }

  // 100 records, of which one fails its checksum.
  void DamageRecord(const std::string& name, size_t record) {
    WriteShard(folder / name, 0, 100);
    const std::string bytes = ReadFile(folder / name);
    WriteShard(folder / "before", 0, static_cast<int64_t>(record));
    FlipBit(folder / name, ReadFile(folder / "before").size() + 20);
  }

  // 100 records, of which one is no Example.
  void WriteMixed(const std::string& name, size_t record) {
    std::vector<std::string> records;
    for (int64_t n = 0; n < 100; ++n)
      records.push_back(n == static_cast<int64_t>(record) ? "\xff no message" : MakeRecord(n, 8));
    WriteRecords(folder / name, records);
  }

  ScratchFolder folder;
};

// With elements that `save` has written.
struct KeptFiles : ContractFiles {
  KeptFiles() {
    const RunResult saved = RunText(
        Spec("$RANGE | shuffle { buffer_size: 50 seed: 6 } | map { out: 'a = value' out: 'b "
             "= random_uniform([3], seed=1) + value' } | save { path: 'FOLDER/saved' } | batch { "
             "batch_size: "
             "50 }"));
    REQUIRE(saved.status.ok());
  }
};

}  // namespace penstock::test
