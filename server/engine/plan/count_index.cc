#include "server/engine/plan/count_index.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/cache_folder.h"
#include "base/file.h"
#include "base/file_error.h"
#include "io/record/row_places.h"
#include "io/record/token_counts.h"
#include "server/engine/spec/constant_file.h"
#include "server/engine/spec/descriptor_path.h"
#include "server/engine/spec/deterministic_bytes.h"
#include "server/engine/spec/op_traits.h"
#include "server/engine/spec/stage_files.h"
#include "server/engine/spec/stage_message.h"
#include "server/engine/spec/stages.h"

namespace penstock {
namespace {

// Raised where counts of the same key may be others.
constexpr int kKeyVersion = 1;

// The nodes of a stage that counts.
struct CountedNodes {
  WorkNode* rows = nullptr;    // whose loader counts
  OrderNode* order = nullptr;  // of the same stage; null where it stands in a dataset of its own
};

void FindRows(WorkNode& node, std::vector<CountedNodes>* found) {
  for (const std::unique_ptr<WorkNode>& input : node.inputs) FindRows(*input, found);
  if (node.kind != WorkNode::Kind::kLoad || node.inputs.empty()) return;
  if (dynamic_cast<const CountableLoader*>(node.loader.get()) != nullptr)
    found->push_back({&node, nullptr});
}

// The op that packs, whose one input is the section in front of it.
OrderNode* FindOrder(OrderNode& node, int stage) {
  if (node.stage == stage && node.inputs.size() == 1 && node.inputs[0]->stage == stage &&
      node.inputs[0]->inputs.size() == 1)
    return &node;
  for (const std::unique_ptr<OrderNode>& input : node.inputs) {
    if (OrderNode* const found = FindOrder(*input, stage)) return found;
  }
  return nullptr;
}

std::vector<CountedNodes> FindNodes(const Dataset& dataset) {
  std::vector<CountedNodes> found;
  if (dataset.work == nullptr || dataset.order == nullptr) return found;
  FindRows(*dataset.work, &found);
  for (CountedNodes& nodes : found)
    nodes.order = FindOrder(*dataset.order, nodes.rows->stages.back());
  return found;
}

const CountableLoader& CounterOf(const WorkNode& rows) {
  return dynamic_cast<const CountableLoader&>(*rows.loader);
}

// The policy of a source's stage, if it has one.
v1::DamagePolicy::OnDamage PolicyOf(const v1::Stage& stage) {
  const google::protobuf::Message* const options = OptionsOf(stage);
  if (options == nullptr) return v1::DamagePolicy::FAIL;
  const google::protobuf::Descriptor& type = *options->GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const google::protobuf::FieldDescriptor* const field = type.field(i);
    if (field->is_repeated() || field->message_type() != v1::DamagePolicy::descriptor()) continue;
    return static_cast<const v1::DamagePolicy&>(
               options->GetReflection()->GetMessage(*options, field))
        .on_damage();
  }
  return v1::DamagePolicy::FAIL;
}

// What of a stage its results depend on.
std::string TextOf(v1::Stage stage) {
  stage.clear_name();
  StripConstantFiles(&stage);
  StripFileArguments(&stage);
  StripDescriptorPaths(&stage);
  if (google::protobuf::Message* const options = MutableOptionsOf(&stage)) {
    for (const Option option : TraitsOf(stage).without_effect) ClearOption(options, option);
  }
  return DeterministicBytes(stage);
}

class Finder {
 public:
  explicit Finder(const BuiltPlan& plan)
      : plan_(plan), spec_(plan.stages.spec()), stages_(AllStages(spec_)) {}

  CountedStage Find(const CountedNodes& nodes) const {
    CountedStage counted;
    counted.stage = nodes.rows->stages.back();
    counted.rows = &CounterOf(*nodes.rows);
    // Behind the cells of its section.
    const WorkNode& cells = *nodes.rows->inputs[0];
    if (nodes.order == nullptr || cells.kind != WorkNode::Kind::kLoad || cells.inputs.size() != 1) {
      counted.reason = "it is in a dataset that is made anew for each element or window";
    } else {
      counted.elements = cells.inputs[0].get();
      counted.reason = Look(&counted);
    }
    return counted;
  }

 private:
  // Why there can be no index, or "".
  std::string Look(CountedStage* counted) const {
    std::string work;
    const WorkNode* node = counted->elements;
    for (; node->kind == WorkNode::Kind::kWork; node = node->inputs[0].get()) {
      if (!node->marks.empty()) return "an element comes several times, and draws each time";
      std::string reason;
      work = TextOfWork(*node, &reason) + work;
      if (!reason.empty()) return reason;
    }
    if (node->kind != WorkNode::Kind::kLoad) return "its elements come from several sources";
    if (!node->inputs.empty()) {
      return absl::StrCat("values decide the order in front of it (",
                          plan_.stages.names()[node->stages.back()], ")");
    }
    if (node->reference != 0 || !node->marks.empty())
      return "its elements have more than one reference";
    if (std::string reason = LookAtFiles(*node, counted); !reason.empty()) return reason;
    const std::string content = node->loader->ContentKey();
    if (content.empty()) return "its elements know the paths of their files";
    counted->key = absl::StrCat("penstock tokens ", kKeyVersion, "\n", content, "\n",
                                counted->on_damage == OnDamage::kFail ? "" : "damage is left out\n",
                                work, counted->rows->CountingKey());
    if (counted->key.size() > TokenCounts::kMaxKeyBytes)
      return "the stages in front of it are larger than a key may be";
    return "";
  }

  std::string TextOfWork(const WorkNode& node, std::string* reason) const {
    std::string text;
    for (size_t i = 0; i < node.parts.size(); ++i) {
      const WorkPart& part = node.parts[i];
      const WorkOp& op = part.op != nullptr ? *part.op : *node.op;
      const std::string& name = plan_.stages.names()[part.stage];
      if (op.draws()) *reason = absl::StrCat("stage ", name, " draws by chance");
      if (op.away() != nullptr)
        *reason = absl::StrCat("stage ", name, " computes elements in other processes");
      if (part.batched) *reason = absl::StrCat("stage ", name, " computes batches");
      absl::StrAppend(&text, SignatureToString(op.output()), "\n", TextOf(*stages_[part.stage]),
                      "\n");
    }
    return text;
  }

  std::string LookAtFiles(const WorkNode& source, CountedStage* counted) const {
    const std::vector<FileRange>& sources = plan_.files.sources();
    const auto range = std::find_if(sources.begin(), sources.end(), [&](const FileRange& files) {
      return files.first == source.first_file;
    });
    const Manifest& manifest = plan_.files.manifest();
    if (range == sources.end() || range->count == 0 || manifest[range->first].path.empty())
      return "its source reads no files of records";
    counted->files = *range;
    for (uint32_t i = range->first; i < range->first + range->count; ++i) {
      const FileEntry& file = manifest[i];
      if (IsAddress(file.path))
        return absl::StrCat("its files lie on other machines, as ", file.path);
      // References of such rows are the numbers of the source's elements, which its `rows` choose.
      if (dynamic_cast<const RowPlaces*>(file.indexed.get()) != nullptr)
        return "its source counts its elements, and has no records in their places";
      if (file.indexed == nullptr || file.is_stream) {
        return absl::StrCat(
            "the records of its files have no index (compressed ones have none), "
            "as those of ",
            file.path);
      }
    }
    const int stage = plan_.files.source_stages()[range - sources.begin()];
    switch (PolicyOf(*stages_[stage])) {
      case v1::DamagePolicy::SKIP_SHARD:
        return "its source leaves out the rest of a damaged file";
      case v1::DamagePolicy::SKIP_RECORD:
        counted->on_damage = OnDamage::kSkipRecord;
        break;
      default:
        counted->on_damage = OnDamage::kFail;
    }
    return "";
  }

  const BuiltPlan& plan_;
  mutable v1::PipelineSpec spec_;  // a copy, since stages are looked up in one that may be changed
  const std::vector<v1::Stage*> stages_;
};

constexpr char kWithout[] =
    "every document is computed to pack it, by each host of a world, and on resuming those of one "
    "window again";

// What is to be said where not all files have one that can be used; "" where all have.
std::string WhyNot(const CountedStage& counted, FileSystem& files, const Manifest& manifest,
                   uint64_t* documents) {
  FolderIndexStore store(files, CacheFolder("index"));
  for (uint32_t i = 0; i < counted.files.count; ++i) {
    const std::string& path = manifest[counted.files.first + i].path;
    absl::StatusOr<std::shared_ptr<RandomAccessFile>> file = files.Open(path);
    const absl::StatusOr<FoundTokenCounts> found =
        file.ok() ? LookAtTokenCounts(**file, counted.key, store) : file.status();
    std::string why;
    if (!found.ok()) {
      why = std::string(found.status().message());
    } else if (found->sums.left_out > 0 && !counted.rows->ignored()) {
      why = absl::StrCat("its index of tokens leaves out ", found->sums.left_out,
                         " documents, and no ignore_errors follows (", path, ")");
    } else {
      *documents += found->sums.records - found->sums.left_out;
      continue;
    }
    if (i > 0) absl::StrAppend(&why, ", and ", i, " files in front of it have one");
    return why;
  }
  return "";
}

}  // namespace

std::vector<CountedStage> FindCounted(const BuiltPlan& plan) {
  std::vector<CountedStage> found;
  const std::vector<CountedNodes> nodes = FindNodes(plan.dataset);
  if (nodes.empty()) return found;
  const Finder finder(plan);
  for (const CountedNodes& of_stage : nodes) found.push_back(finder.Find(of_stage));
  return found;
}

void UseCountIndices(BuiltPlan* plan) {
  const std::vector<CountedNodes> nodes = FindNodes(plan->dataset);
  if (nodes.empty()) return;
  const Finder finder(*plan);
  for (const CountedNodes& of_stage : nodes) {
    const CountedStage counted = finder.Find(of_stage);
    if (!counted.reason.empty()) {
      plan->stages.AddNotice(
          counted.stage,
          absl::StrCat(kWithout, "; an index of tokens cannot be: ", counted.reason));
      continue;
    }
    uint64_t documents = 0;
    const std::string why =
        WhyNot(counted, plan->files.system(), plan->files.manifest(), &documents);
    if (!why.empty()) {
      plan->stages.AddNotice(
          counted.stage,
          absl::StrCat(kWithout, "; `penstock index --tokens SPEC` spares that: ", why));
      continue;
    }
    plan->stages.AddNotice(
        counted.stage, absl::StrCat("packs by the index of tokens, ", documents, " documents in ",
                                    counted.files.count,
                                    " files: a document is computed when a sequence that has a "
                                    "part of it is"));
    // The section goes, and its cells. The loader stays as long as the order: paths are told by it
    // where later stages have asked for them.
    OrderNode& order = *of_stage.order;
    WorkNode& rows = *of_stage.rows;
    OrderFactory make = counted.rows->OrderByCounts(
        std::make_shared<DocumentCounts>(plan->files.system(), counted.files, counted.on_damage,
                                         counted.key),
        counted.elements, plan->stages.names()[counted.stage]);
    std::unique_ptr<ColumnLoader> loader = counted.rows->LoaderByCounts();
    order.make =
        [make = std::move(make), before = std::shared_ptr<ColumnLoader>(std::move(rows.loader))](
            FrontContext& context, OrderInputs inputs) { return make(context, std::move(inputs)); };
    order.cursor_class = CursorClass::kSeek;
    order.inputs[0] = std::exchange(order.inputs[0]->inputs[0], nullptr);
    rows.loader = std::move(loader);
    rows.inputs[0] = std::exchange(rows.inputs[0]->inputs[0], nullptr);
  }
}

}  // namespace penstock
