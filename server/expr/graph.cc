#include "server/expr/graph.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/row_identity.h"
#include "server/expr/broadcast.h"
#include "server/expr/region.h"

namespace penstock::expr {
namespace {

// A key that two nodes share exactly when they compute the same.
std::string KeyOf(const Node& node) {
  std::string key = absl::StrCat(static_cast<int>(node.kind), " ", TypeToString(node.type), " ",
                                 node.input, " ", node.weak);
  if (node.function != nullptr) absl::StrAppend(&key, " ", Text(node.function->name));
  for (const Node* argument : node.arguments) absl::StrAppend(&key, " #", argument->id);
  key += '|';
  key.append(reinterpret_cast<const char*>(node.data.data()), node.data.size());
  key.append(reinterpret_cast<const char*>(node.source.data()),
             node.source.size() * sizeof(int32_t));
  return key;
}

// The unpacking that all arguments but constants come from.
const Node* CommonBits(absl::Span<const Node* const> arguments) {
  const Node* bits = nullptr;
  for (const Node* argument : arguments) {
    if (argument->is_constant()) continue;
    if (argument->bits == nullptr || (bits != nullptr && bits != argument->bits)) return nullptr;
    bits = argument->bits;
  }
  return bits;
}

// Arithmetic on one narrower value and constants, so that its elements are better moved in front of
// it.
bool WidensOneValue(const Node& node) {
  const Node* at = &node;
  while (at->kind == Node::Kind::kElementwise) {
    const Node* next = nullptr;
    for (const Node* argument : at->arguments) {
      if (argument->is_constant() || argument == next) continue;
      if (next != nullptr) return false;
      next = argument;
    }
    at = next;
  }
  return DTypeSize(at->type.dtype) < DTypeSize(node.type.dtype);
}

}  // namespace

absl::StatusOr<const Node*> Graph::Add(std::unique_ptr<Node> node, const std::string& suffix) {
  const std::string key = KeyOf(*node) + suffix;
  const auto found = known_.find(key);
  if (found != known_.end()) return found->second;
  if (nodes_.size() >= kMaxNodes) {
    return absl::InvalidArgumentError(absl::StrCat("more than ", kMaxNodes, " operations"));
  }
  constant_bytes_ += static_cast<int64_t>(node->data.size());
  if (node->row.texts != nullptr) {
    for (const std::string& text : *node->row.texts)
      constant_bytes_ += static_cast<int64_t>(text.size());
  }
  if (constant_bytes_ > kMaxConstantBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("constants larger than limit: ", kMaxConstantBytes, " bytes"));
  }
  node->id = static_cast<int>(nodes_.size());
  known_.emplace(key, node.get());
  nodes_.push_back(std::move(node));
  return nodes_.back().get();
}

absl::StatusOr<const Node*> Graph::Input(int input, const TensorType& type) {
  auto node = std::make_unique<Node>();
  node->kind = Node::Kind::kInput;
  node->type = type;
  node->input = input;
  if (!node->fixed()) node->sizes_of = node.get();
  return Add(std::move(node), "");
}

absl::StatusOr<const Node*> Graph::Identity() {
  auto node = Input(identity_input_, {DType::kUint64, {sizeof(RowIdentity) / sizeof(uint64_t)}});
  if (node.ok()) identity_ = *node;
  return node;
}

absl::StatusOr<const Node*> Graph::Constant(const TensorType& type, std::vector<uint8_t> data,
                                            bool weak) {
  auto node = std::make_unique<Node>();
  node->kind = Node::Kind::kConstant;
  node->type = type;
  node->data = std::move(data);
  node->weak = weak;
  return Add(std::move(node), "");
}

absl::StatusOr<const Node*> Graph::Cast(const Node* value, DType dtype) {
  if (value->type.dtype == dtype && !value->weak) return value;
  if (value->type.dtype == dtype) return Constant(value->type, value->data, false);
  const FunctionEntry* entry = FindFunction(DTypeName(dtype));
  const auto* function = entry ? std::get_if<ElementwiseFunction>(&entry->function) : nullptr;
  if (function == nullptr || function->rule != TypeRule::kCast) {
    return absl::InvalidArgumentError(
        absl::StrCat("no cast to ", Text(DTypeName(dtype)), " from ", TypeToString(value->type)));
  }
  return Elementwise(*function, {value}, {dtype, value->type.shape});
}

absl::StatusOr<const Node*> Graph::Elementwise(const ElementwiseFunction& function,
                                               std::vector<const Node*> arguments,
                                               const TensorType& type) {
  // What has no elements is computed of none.
  if (NumElements(type.shape) == 0) return Constant(type, {}, false);
  auto node = std::make_unique<Node>();
  node->kind = Node::Kind::kElementwise;
  node->type = type;
  node->function = &function;
  bool constant = true;
  for (const Node* argument : arguments) {
    constant &= argument->is_constant();
    if (argument->sizes_of != nullptr) node->sizes_of = argument->sizes_of;
  }
  node->bits = CommonBits(arguments);
  node->arguments = std::move(arguments);
  if (!constant) return Add(std::move(node), "");
  auto data = EvaluateConstant(*node);
  if (!data.ok()) return data.status();
  return Constant(type, std::move(*data), false);
}

absl::StatusOr<const Node*> Graph::View(const Node* value, const Shape& shape,
                                        std::vector<int32_t> source) {
  Views views;
  return View(value, shape, std::move(source), &views);
}

absl::StatusOr<const Node*> Graph::View(const Node* value, const Shape& shape,
                                        std::vector<int32_t> source, Views* views) {
  bool identity = static_cast<int64_t>(source.size()) == value->elements();
  for (size_t i = 0; identity && i < source.size(); ++i) {
    identity = source[i] == static_cast<int32_t>(i);
  }
  if (identity) source.clear();
  if (source.empty() && shape == value->type.shape) return value;
  if (value->is_constant()) {
    if (source.empty()) return Constant({value->type.dtype, shape}, value->data, false);
    const size_t size = DTypeSize(value->type.dtype);
    std::vector<uint8_t> data(source.size() * size);
    for (size_t i = 0; i < source.size(); ++i) {
      std::memcpy(data.data() + i * size, value->data.data() + source[i] * size, size);
    }
    return Constant({value->type.dtype, shape}, std::move(data), false);
  }
  if (value->kind == Node::Kind::kView) {
    if (source.empty()) {
      source = value->source;
    } else if (!value->source.empty()) {
      for (int32_t& element : source) element = value->source[element];
    }
    return View(value->arguments[0], shape, std::move(source));
  }
  // A rearrangement moves fewer bytes in front of what makes them wider. Bits are unpacked in any
  // order and type for nothing.
  if (!source.empty() && value->kind == Node::Kind::kElementwise && value->fixed() &&
      static_cast<int64_t>(source.size()) <= value->elements() &&
      (value->function->rule == TypeRule::kCast
           ? DTypeSize(value->type.dtype) > DTypeSize(value->arguments[0]->type.dtype)
           : value->bits == nullptr && WidensOneValue(*value))) {
    std::vector<const Node*> arguments;
    for (const Node* argument : value->arguments) {
      if (argument->is_constant() && argument->elements() == 1) {
        arguments.push_back(argument);
        continue;
      }
      const Node*& moved = (*views)[argument];
      if (moved == nullptr) {
        auto view = View(argument, shape, source, views);
        if (!view.ok()) return view;
        moved = *view;
      }
      arguments.push_back(moved);
    }
    return Elementwise(*value->function, std::move(arguments), {value->type.dtype, shape});
  }
  auto node = std::make_unique<Node>();
  node->kind = Node::Kind::kView;
  node->type = {value->type.dtype, shape};
  node->arguments = {value};
  node->source = std::move(source);
  node->bits = value->bits;
  return Add(std::move(node), "");
}

absl::StatusOr<const Node*> Graph::Broadcast(const Node* value, const Shape& shape) {
  const auto elements = NumElements(shape);
  if (!elements || *elements > kMaxViewElements) {
    return absl::InvalidArgumentError(absl::StrCat("broadcasting to ", ShapeToString(shape),
                                                   " exceeds the limit of ", kMaxViewElements,
                                                   " elements"));
  }
  if (*elements == value->elements()) return View(value, shape, {});
  // A list of no elements would be that of the same order.
  if (*elements == 0) return Constant({value->type.dtype, shape}, {}, false);
  std::vector<int64_t> places(static_cast<size_t>(*elements));
  BroadcastPlaces(value->type.shape, shape, places.data());
  std::vector<int32_t> source(places.begin(), places.end());
  return View(value, shape, std::move(source));
}

absl::StatusOr<const Node*> Graph::Row(BoundRowFunction row, std::vector<const Node*> arguments,
                                       const std::string& key, const Node* sizes_of) {
  auto node = std::make_unique<Node>();
  node->kind = Node::Kind::kRow;
  node->type = row.type;
  node->arguments = std::move(arguments);
  node->name = key.substr(0, key.find(' '));
  if (row.unpacks_bits) node->bits = node.get();
  if (!node->fixed()) node->sizes_of = sizes_of != nullptr ? sizes_of : node.get();
  node->row = std::move(row);
  return Add(std::move(node), key);
}

}  // namespace penstock::expr
