#include "server/engine/plan/cursor.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/far_file.h"
#include "base/file_error.h"
#include "base/random.h"
#include "base/release.h"
#include "base/side_by_side.h"
#include "base/stop_flag.h"
#include "io/file/crc32c.h"
#include "io/record/index_file.h"
#include "server/engine/plan/op_meaning.h"
#include "server/engine/plan/plan_impl.h"
#include "server/engine/read/far_ends.h"
#include "server/engine/spec/constant_file.h"
#include "server/engine/spec/descriptor_path.h"
#include "server/engine/spec/deterministic_bytes.h"
#include "server/engine/spec/op_traits.h"
#include "server/engine/spec/python_functions.h"
#include "server/engine/spec/spec_paths.h"
#include "server/engine/spec/stage_files.h"
#include "server/engine/spec/stage_message.h"
#include "server/engine/spec/stages.h"

namespace penstock {
namespace {

constexpr std::string_view kMagic = "PNSC";
constexpr size_t kHeaderBytes = 8;

// Joins values into one hash in which their order counts.
class Hash {
 public:
  void Add(std::string_view bytes) { state_ = MixKey(state_ + bytes.size(), bytes); }
  void Add(uint64_t number) {
    Add(std::string_view(reinterpret_cast<const char*>(&number), sizeof(number)));
  }
  uint64_t value() const { return state_; }

 private:
  uint64_t state_ = 0x50454e53544f434b;
};

// As many indices of files on other machines are loaded at a time.
constexpr size_t kIndicesAtATime = 32;

// Those from number `first` on, by the same threads for all of them. What is wrong with one is told
// to who asks for it; none is asked for behind it.
void LoadIndices(FileTable& files, size_t first, const std::atomic<bool>& is_unwanted) {
  const Manifest& manifest = files.manifest();
  std::atomic<bool> is_missing{false};
  EachSideBySide(kIndicesAtATime, manifest.size() - first, "indices", manifest[first].path,
                 [&](size_t k) {
                   const FileEntry& entry = manifest[first + k];
                   if (is_missing || is_unwanted) return;
                   if (entry.indexed == nullptr || !IsAddress(entry.path)) return;
                   const auto file = static_cast<uint32_t>(first + k);
                   if (!files.Index(file, OnDamage::kFail).ok() &&
                       !files.Index(file, OnDamage::kSkipRecord).ok())
                     is_missing = true;
                 });
}

// Of all files together; absent where one that can have an index has none.
std::optional<uint64_t> CountsOf(const PlanImpl& plan, const std::atomic<bool>& is_unwanted) {
  FileTable files(plan.files(), plan.manifest(), IndexBuilding::kNever, &plan.indices());
  const auto size = static_cast<uint32_t>(plan.manifest().size());
  Hash counts;
  bool any = false;
  bool are_loaded = false;
  for (uint32_t i = 0; i < size && !is_unwanted; ++i) {
    if (plan.manifest()[i].indexed == nullptr) continue;
    // The first one tells whether there are any.
    if (any && !are_loaded && IsAddress(plan.manifest()[i].path)) {
      LoadIndices(files, i, is_unwanted);
      are_loaded = true;
    }
    auto index = files.Index(i, OnDamage::kFail);
    // One that leaves out damage counts for a pipeline that skips it.
    if (!index.ok()) index = files.Index(i, OnDamage::kSkipRecord);
    // How many there are then depends on what was verified.
    if (!index.ok() || !(*index)->damage().empty()) return std::nullopt;
    counts.Add((*index)->size());
    any = true;
  }
  return any ? std::optional(counts.value()) : std::nullopt;
}

// What stands for a file's ends where the server's tags are trusted with that.
std::optional<uint64_t> TrustedTagOf(const PlanImpl& plan, const FileEntry& file) {
  auto* const joined = dynamic_cast<JoinedFileSystem*>(&plan.files());
  if (joined == nullptr || !IsAddress(file.path)) return std::nullopt;
  return joined->TrustedTag({file.path, file.size_bytes, file.version});
}

absl::Status AddEnds(const PlanImpl& plan, v1::Fingerprint* fingerprint) {
  Hash names, sizes, ends;
  FarEnds far_ends(plan.files(), plan.manifest());
  for (const FileRange& source : plan.sources()) names.Add(source.count);
  for (const FileEntry& entry : plan.manifest()) {
    if (entry.path.empty()) continue;
    CheckStop();
    // A folder of another name, or on another host, holds the same data, and so may another
    // descriptor.
    const bool is_descriptor = IsDescriptorPath(entry.path);
    names.Add(is_descriptor ? std::string_view("")
                            : std::string_view(entry.path).substr(entry.path.rfind('/') + 1));
    sizes.Add(entry.size_bytes);
    if (const std::optional<uint64_t> tag = TrustedTagOf(plan, entry)) {
      ends.Add(*tag);
      continue;
    }
    absl::StatusOr<std::shared_ptr<RandomAccessFile>> file =
        IsAddress(entry.path) ? far_ends.Open(&entry - plan.manifest().data())
                              : plan.files().Open(entry.path);
    if (!file.ok()) return file.status();
    const absl::StatusOr<IndexStamp> stamp = StampOf(**file);
    if (!stamp.ok()) return stamp.status();
    ends.Add(stamp->first_crc);
    ends.Add(stamp->last_crc);
  }
  fingerprint->set_names(names.value());
  fingerprint->set_sizes(sizes.value());
  fingerprint->set_ends(ends.value());
  return absl::OkStatus();
}

absl::Status AddFiles(const PlanImpl& plan, v1::Fingerprint* fingerprint) {
  const Manifest& manifest = plan.manifest();
  const auto far = std::find_if(manifest.begin(), manifest.end(),
                                [](const FileEntry& file) { return IsAddress(file.path); });
  absl::Status status;
  std::optional<uint64_t> counts;
  std::atomic<bool> has_failed{false};
  const auto add = [&](size_t part) {
    if (part == 0) {
      status = AddEnds(plan, fingerprint);
      has_failed = !status.ok();
    } else {
      counts = CountsOf(plan, has_failed);
    }
  };
  // Both wait for the same servers.
  const bool is_far = far != manifest.end();
  EachSideBySide(is_far ? 2 : 1, 2, "fetching", is_far ? far->path : "", add);
  if (status.ok() && counts) fingerprint->set_counts(*counts);
  return status;
}

// Leaves the names of a stage's files of arrays, but not their folders.
void StripFolders(v1::Stage* stage) {
  VisitPaths(stage, [](PathKind kind, std::string* path) {
    if (kind == PathKind::kArrays) *path = path->substr(path->rfind('/') + 1);
  });
}

// Takes options out of a stage that are no matter of its elements.
void StripWithoutEffect(v1::Stage* stage) {
  google::protobuf::Message* const options = MutableOptionsOf(stage);
  if (options == nullptr) return;
  for (const Option option : TraitsOf(*stage).without_effect) ClearOption(options, option);
}

// Takes out of an op's options what has a figure of its own in the fingerprint (files, seeds,
// nested stages and, of the op that makes the stream's batches, their size), and what is no matter
// of the order.
void StripOptions(v1::Stage* stage, bool makes_batches, Hash* seeds) {
  google::protobuf::Message* const options = MutableOptionsOf(stage);
  if (options == nullptr) return;
  StripFolders(stage);
  StripWithoutEffect(stage);
  const OpTraits& traits = TraitsOf(*stage);
  const google::protobuf::Reflection& reflection = *options->GetReflection();
  if (const auto seed = FindOption(*options, traits.seed); seed.options != nullptr) {
    const google::protobuf::Reflection& of_seed = *seed.options->GetReflection();
    if (of_seed.HasField(*seed.options, seed.field))
      seeds->Add(static_cast<uint64_t>(of_seed.GetInt64(*seed.options, seed.field)));
  }
  for (const Option option : {traits.seed, traits.files, traits.folder})
    ClearOption(options, option);
  if (makes_batches) ClearOption(options, traits.batch_size);
  const auto* const inputs = InputField(*options);
  if (inputs == nullptr) return;
  // Nested stages come by themselves; how many of them each input has tells where they belong.
  for (int i = 0; i < reflection.FieldSize(*options, inputs); ++i) {
    auto& input = static_cast<v1::Input&>(*reflection.MutableRepeatedMessage(options, inputs, i));
    for (v1::Stage& nested : *input.mutable_stage()) nested.Clear();
  }
}

// Whether the size of the stream's batches is a figure of the fingerprint.
bool HasBatchSize(const PlanImpl& plan) {
  return !plan.tensors().empty() && plan.tensors()[0].batched;
}

void AddStages(const PlanImpl& plan, v1::Fingerprint* fingerprint) {
  const BatchForm& form = plan.program().form();
  Hash order, seeds, work;
  v1::PipelineSpec spec = plan.spec();
  const std::vector<v1::Stage*> stages = AllStages(spec);
  for (size_t i = 0; i < stages.size(); ++i) {
    v1::Stage stage = *stages[i];
    StripConstantFiles(&stage);
    StripFileArguments(&stage);
    StripDescriptorPaths(&stage);
    switch (plan.stage_kinds()[i]) {
      case StageKind::kHint:
        break;
      case StageKind::kOrder:
        StripOptions(&stage, HasBatchSize(plan) && static_cast<size_t>(form.stage) == i, &seeds);
        order.Add(DeterministicBytes(stage));
        break;
      case StageKind::kWork:
        StripWithoutEffect(&stage);
        work.Add(DeterministicBytes(stage));
        break;
    }
  }
  fingerprint->set_order(order.value());
  fingerprint->set_seeds(seeds.value());
  fingerprint->set_work(work.value());
}

// Of its Python functions; 0: it calls none.
uint64_t HashOfCode(const PlanImpl& plan) {
  Hash codes;
  bool any = false;
  VisitPythonFunctions(plan.spec(), [&](const v1::PythonFunction& function) {
    codes.Add(function.code());
    any = true;
  });
  return any ? std::max<uint64_t>(codes.value(), 1) : 0;
}

}  // namespace

absl::StatusOr<v1::Fingerprint> FingerprintOf(const Plan& plan) {
  const auto& built = static_cast<const PlanImpl&>(plan);
  v1::Fingerprint fingerprint;
  if (absl::Status status = AddFiles(built, &fingerprint); !status.ok()) return status;
  AddStages(built, &fingerprint);
  *fingerprint.mutable_meanings() = MeaningsOf(built);
  fingerprint.set_batch_size(HasBatchSize(built) ? built.batch_rows() : 0);
  fingerprint.set_code(HashOfCode(built));
  return fingerprint;
}

CursorMaker::CursorMaker(v1::Fingerprint fingerprint) : fingerprint_(std::move(fingerprint)) {
  if (fingerprint_.has_meanings())
    *fingerprint_.mutable_meanings() = InShort(fingerprint_.meanings());
}

uint64_t OrderKey(const v1::Fingerprint& fingerprint) {
  Hash hash;
  for (const uint64_t part : {fingerprint.names(), fingerprint.sizes(), fingerprint.ends(),
                              fingerprint.order(), fingerprint.seeds(), fingerprint.batch_size()})
    hash.Add(part);
  return hash.value();
}

uint64_t MovesBehind(uint64_t moves, uint64_t step, uint64_t order_key, uint64_t skip_steps,
                     const Position* seek, const uint64_t* pass) {
  Hash hash;
  for (const uint64_t part : {moves, step, order_key, skip_steps}) hash.Add(part);
  hash.Add(uint64_t{seek != nullptr});
  if (seek != nullptr) {
    hash.Add(seek->counters().size());
    for (const uint64_t counter : seek->counters()) hash.Add(counter);
  }
  hash.Add(uint64_t{pass != nullptr});
  if (pass != nullptr) hash.Add(*pass);
  // 0 is for none.
  return std::max<uint64_t>(hash.value(), 1);
}

absl::StatusOr<std::string> CursorMaker::Make(uint64_t step, const Position& position) const {
  v1::Cursor cursor;
  cursor.set_release(kRelease);
  cursor.set_step(step);
  *cursor.mutable_fingerprint() = fingerprint_;
  for (const uint64_t counter : position.counters()) cursor.add_position(counter);
  std::string bytes(kMagic);
  const std::string message = DeterministicBytes(cursor);
  const uint32_t crc =
      MaskCrc32c(Crc32c(reinterpret_cast<const uint8_t*>(message.data()), message.size()));
  for (int i = 0; i < 4; ++i) bytes.push_back(static_cast<char>(crc >> (8 * i)));
  bytes += message;
  if (bytes.size() <= kMaxCursorBytes) return bytes;
  return absl::ResourceExhaustedError(absl::StrCat(
      "the cursor of this pipeline is longer than a cursor may be: ", bytes.size(), " > ",
      kMaxCursorBytes, " bytes, for ", position.counters().size(), " counters of its ops"));
}

namespace {

absl::StatusOr<v1::Cursor> Decode(std::string_view bytes) {
  if (bytes.size() > kMaxCursorBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "not a cursor: longer than one may be: ", bytes.size(), " > ", kMaxCursorBytes, " bytes"));
  }
  if (bytes.size() < kHeaderBytes || bytes.substr(0, 4) != kMagic) {
    return absl::InvalidArgumentError(
        absl::StrCat("not a cursor: expected ", kHeaderBytes,
                     " bytes or more that begin with \"PNSC\", found ", bytes.size(), " bytes"));
  }
  uint32_t stored = 0;
  for (int i = 0; i < 4; ++i) stored |= uint32_t{static_cast<uint8_t>(bytes[4 + i])} << (8 * i);
  const std::string_view message = bytes.substr(kHeaderBytes);
  if (stored !=
      MaskCrc32c(Crc32c(reinterpret_cast<const uint8_t*>(message.data()), message.size()))) {
    return absl::InvalidArgumentError(
        "not a whole cursor: its checksum is wrong; it was cut or changed");
  }
  v1::Cursor cursor;
  if (!cursor.ParseFromArray(message.data(), static_cast<int>(message.size())))
    return absl::InvalidArgumentError("not a cursor: malformed message");
  return cursor;
}

}  // namespace

uint64_t MovesOf(std::string_view cursor) {
  const absl::StatusOr<v1::Cursor> decoded = Decode(cursor);
  return decoded.ok() ? decoded->fingerprint().moves() : 0;
}

uint64_t CodeOf(std::string_view cursor) {
  const absl::StatusOr<v1::Cursor> decoded = Decode(cursor);
  return decoded.ok() ? decoded->fingerprint().code() : 0;
}

bool IsOtherCode(uint64_t a, uint64_t b) { return a != 0 && b != 0 && a != b; }

absl::StatusOr<ResumePoint> ReadCursor(std::string_view bytes, const v1::Fingerprint& expected,
                                       ChangedWork changed_work) {
  const absl::StatusOr<v1::Cursor> decoded = Decode(bytes);
  if (!decoded.ok()) return decoded.status();
  const v1::Cursor& cursor = *decoded;
  const v1::Fingerprint& found = cursor.fingerprint();
  const auto differs = [](absl::string_view what) {
    return absl::FailedPreconditionError(
        absl::StrCat("the cursor belongs to another stream: ", what));
  };
  if (found.order() != expected.order()) return differs("its order ops or their options differ");
  const bool other_work = found.work() != expected.work();
  // In one release a spec alone decides the meanings. Where the work is another one, those of its
  // stages say nothing then.
  const bool same_meanings = found.has_meanings() && cursor.release() == kRelease;
  if (const absl::Status status = CheckMeanings(
          found.meanings(), expected.meanings(),
          other_work && same_meanings ? MeaningsOfWork::kAny : MeaningsOfWork::kEqual);
      !status.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the cursor belongs to another stream: ", status.message(),
                     "; go on with the release that made the cursor",
                     cursor.release() == kRelease ? "" : absl::StrCat(" (", cursor.release(), ")"),
                     ", or begin without it"));
  }
  if (found.batch_size() != expected.batch_size()) {
    return differs(absl::StrCat("its batch size is ", found.batch_size(), ", this pipeline's ",
                                expected.batch_size()));
  }
  if (found.seeds() != expected.seeds())
    return differs("its seeds differ; one that a spec does not give is drawn anew by each run");
  if (found.names() != expected.names())
    return differs("its files have other names, or there are more or fewer of them");
  if (found.sizes() != expected.sizes()) return differs("its files have other sizes");
  if (found.ends() != expected.ends())
    return differs(
        "its files have the same sizes but begin or end with other bytes (or have other ETags, "
        "which stand for these with remote { trust_etags })");
  if (found.counts() != 0 && expected.counts() != 0 && found.counts() != expected.counts())
    return differs("its files have another number of records, as their indices say");
  if (other_work && changed_work == ChangedWork::kRefuse) {
    return differs(
        "its work ops (map, parse_example) or their options differ; with --allow-changed-work the "
        "records go on in their order, with other values");
  }
  ResumePoint point;
  point.step = cursor.step();
  point.moves = found.moves();
  if (other_work) {
    point.notice = absl::StrCat("the work ops changed since the cursor was made: from step ",
                                point.step, " on values differ from those of its stream");
  } else if (IsOtherCode(found.code(), expected.code())) {
    point.notice = absl::StrCat(
        "the code of its Python functions changed since the cursor was made: from step ",
        point.step, " on values may differ from those of its stream");
  }
  point.position = Position({cursor.position().begin(), cursor.position().end()});
  if (cursor.release() != kRelease) {
    absl::StrAppend(&point.notice, point.notice.empty() ? "" : "; ",
                    "the cursor was made by release ", cursor.release(), ", this is ", kRelease,
                    ": equal bytes are promised within one release");
  }
  return point;
}

}  // namespace penstock
