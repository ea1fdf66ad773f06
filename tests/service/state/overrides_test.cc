#include "server/service/state/overrides.h"

#include <string>

#include "google/protobuf/unknown_field_set.h"
#include "server/service/state/text_proto.h"
#include "tests/support/catch.h"

namespace penstock {
namespace {

constexpr char kSpec[] = R"(
  name: "x"
  stage { tfrecord { files: "a" files: "b" } }
  stage { map { constant { name: "K" value: 400 } constant { name: "SIGN" int_value: [1, -1] } } }
  stage { name: "second" map { constant { name: "K" value: 1 } constant { name: "Q" value: 2 } } }
)";

v1::PipelineSpec Parse(const std::string& text) {
  v1::PipelineSpec spec;
  REQUIRE(ParseTextProto(text, "spec", &spec).ok());
  return spec;
}

v1::SpecOverrides Files(const std::string& stage, const std::string& glob) {
  v1::SpecOverrides overrides;
  overrides.add_files()->set_stage(stage);
  overrides.mutable_files(0)->set_glob(glob);
  return overrides;
}

v1::SpecOverrides Constant(const std::string& stage, const std::string& name,
                           const std::string& value) {
  v1::SpecOverrides overrides;
  v1::ConstantOverride* constant = overrides.add_constants();
  constant->set_stage(stage);
  constant->set_name(name);
  constant->set_value(value);
  return overrides;
}

TEST_CASE("overrides replace files, constants, workers and the name") {
  v1::PipelineSpec spec = Parse(kSpec);
  v1::SpecOverrides overrides = Constant("second", "K", "2.5");
  overrides.MergeFrom(Constant("", "Q", "-3"));
  overrides.MergeFrom(Constant("map", "SIGN", "-1,7"));
  overrides.MergeFrom(Files("", "c*"));
  overrides.MergeFrom(Files("tfrecord", "d"));
  overrides.set_workers(5);
  overrides.set_name("y");
  REQUIRE(ApplyOverrides(overrides, &spec).ok());
  CHECK(spec.name() == "y");
  CHECK(spec.workers() == 5);
  REQUIRE(spec.stage(0).tfrecord().files_size() == 2);
  CHECK(spec.stage(0).tfrecord().files(0) == "c*");
  CHECK(spec.stage(0).tfrecord().files(1) == "d");
  CHECK(spec.stage(1).map().constant(0).value(0) == 400);
  CHECK(spec.stage(1).map().constant(1).int_value(0) == -1);
  CHECK(spec.stage(1).map().constant(1).int_value(1) == 7);
  CHECK(spec.stage(2).map().constant(0).value(0) == 2.5);
  CHECK(spec.stage(2).map().constant(1).value(0) == -3);
}

TEST_CASE("no override leaves the spec as it is") {
  v1::PipelineSpec spec = Parse(kSpec);
  REQUIRE(ApplyOverrides({}, &spec).ok());
  CHECK(spec.SerializeAsString() == Parse(kSpec).SerializeAsString());
}

TEST_CASE("an override that fits no stage or several is refused with the stages") {
  const struct {
    v1::SpecOverrides overrides;
    std::string message;
  } kCases[] = {
      {Constant("", "K", "1"),
       "constant override \"K\": several stages have a constant \"K\": map, second; name one: "
       "STAGE.K=1"},
      {Constant("", "k2", "1"),
       "constant override \"k2\": no constant \"k2\"; known are K, SIGN, K, Q"},
      {Constant("map", "Q", "1"),
       "constant override \"Q\": no constant \"Q\" in stage \"map\", did you mean "
       "\"K\"?; known are K, SIGN"},
      {Constant("tfrecord", "cycle_length", "4"),
       "constant override \"cycle_length\": no constant \"cycle_length\" in stage \"tfrecord\"; "
       "there are none; --set names a constant of a map stage: options are written in the spec, or "
       "changed by penstock update --next-epoch --set"},
      {Constant("", "cycle_length", "4"),
       "constant override \"cycle_length\": no constant \"cycle_length\"; known are K, SIGN, K, Q; "
       "--set names a constant of a map stage: options are written in the spec, or changed by "
       "penstock update --next-epoch --set"},
      {Constant("mapp", "K", "1"),
       "constant override \"K\": no stage \"mapp\", did you mean \"map\"?; the spec has tfrecord, "
       "map, second"},
      {Constant("map", "K", "four"), "constant override \"K\": expected a number, found \"four\""},
      {Constant("map", "K", "1,2"),
       "constant override \"K\": expected 1 value, found 2 in \"1,2\""},
      {Constant("map", "SIGN", "1"),
       "constant override \"SIGN\": expected 2 values, found 1 in \"1\""},
      {Constant("map", "SIGN", "1,0.5"),
       "constant override \"SIGN\": expected an integer of 64 bits, found \"0.5\""},
      {Files("map", "c"), "files override \"c\": stage \"map\" reads no files; these do: tfrecord"},
      {Files("", ""), "files override without a path or glob"},
  };
  for (const auto& c : kCases) {
    v1::PipelineSpec spec = Parse(kSpec);
    const absl::Status status = ApplyOverrides(c.overrides, &spec);
    CHECK(status.code() == absl::StatusCode::kInvalidArgument);
    CHECK(std::string(status.message()) == c.message);
  }
}

TEST_CASE("two sources make a files override without a stage ambiguous") {
  v1::PipelineSpec spec =
      Parse("stage { tfrecord { files: 'a' } } stage { name: 'other' tfrecord { files: 'b' } }");
  CHECK(std::string(ApplyOverrides(Files("", "c"), &spec).message()) ==
        "files override \"c\": several stages read files: tfrecord, other; name one: STAGE=c");
  REQUIRE(ApplyOverrides(Files("other", "c"), &spec).ok());
  CHECK(spec.stage(0).tfrecord().files(0) == "a");
  CHECK(spec.stage(1).tfrecord().files(0) == "c");
}

TEST_CASE("fields of a newer client are errors, wherever they stand") {
  v1::SpecSource source;
  source.mutable_spec()->add_stage()->mutable_range()->set_stop(4);
  REQUIRE(ResolveSource(source).ok());
  v1::Stage* stage = source.mutable_spec()->mutable_stage(0);
  stage->GetReflection()->MutableUnknownFields(stage)->AddVarint(4711, 1);
  const absl::Status status = ResolveSource(source).status();
  CHECK(absl::IsInvalidArgument(status));
  CHECK(std::string(status.message()) ==
        "unknown field 4711 in Stage: the client is newer than this daemon");
}

TEST_CASE("relative paths start from the base directory") {
  v1::SpecSource source;
  source.mutable_text()->set_text("stage { tfrecord { files: 'a/*' files: '/b' } }");
  auto spec = ResolveSource(source);
  CHECK(std::string(spec.status().message()) ==
        "stage \"tfrecord\": relative path without a base_directory: \"a/*\"");
  source.set_base_directory("relative");
  CHECK(ResolveSource(source).status().code() == absl::StatusCode::kInvalidArgument);
  source.set_base_directory("/data");
  spec = ResolveSource(source);
  REQUIRE(spec.ok());
  CHECK(spec->stage(0).tfrecord().files(0) == "/data/a/*");
  CHECK(spec->stage(0).tfrecord().files(1) == "/b");
  CHECK(ResolveSource({}).status().code() == absl::StatusCode::kInvalidArgument);
  source.mutable_text()->set_text(
      "stage { zip { input { stage { list_files { files: 'a' } } }"
      " input { stage { from_tensors { npz: 'b.npz' } } } } }");
  spec = ResolveSource(source);
  REQUIRE(spec.ok());
  CHECK(spec->stage(0).zip().input(0).stage(0).list_files().files(0) == "/data/a");
  CHECK(spec->stage(0).zip().input(1).stage(0).from_tensors().npz() == "/data/b.npz");
  source.mutable_text()->set_text(
      "stage { from_tensor_slices { tensor { name: 'x' npy: 'x.npy' } tensor { npy: '/y.npy' }"
      " tensor { npz: 'z' string_value: 's' } } }");
  spec = ResolveSource(source);
  REQUIRE(spec.ok());
  const auto& tensors = spec->stage(0).from_tensor_slices().tensor();
  CHECK(tensors[0].npy() == "/data/x.npy");
  CHECK(tensors[1].npy() == "/y.npy");
  CHECK(tensors[2].npz() == "/data/z");
  CHECK(tensors[2].string_value(0) == "s");
  CHECK(tensors[2].npy() == "");
}

}  // namespace
}  // namespace penstock
