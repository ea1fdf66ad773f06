#include "server/expr/picks.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/in_pieces.h"
#include "server/expr/arguments.h"
#include "server/expr/string_row.h"

namespace penstock::expr {
namespace {

// An axis of the result: where its elements lie, in elements of the tensor.
struct Walk {
  int64_t count = 0;
  int64_t step = 0;
  const int64_t* places = nullptr;  // in the place of `step`, of a list

  int64_t place(int64_t i) const { return places != nullptr ? places[i] : i * step; }
};

// All axes of a result, and where its first element lies.
struct Route {
  int64_t first = 0;
  absl::InlinedVector<Walk, 6> walks;
  Shape shape;
};

// Elements from one to the next along an axis.
int64_t StrideOf(const Shape& shape, size_t axis) {
  int64_t stride = 1;
  for (size_t i = axis + 1; i < shape.size(); ++i) stride *= shape[i];
  return stride;
}

// An index as it is written, counted from the beginning.
absl::StatusOr<int64_t> IndexIn(int64_t index, size_t axis, const Shape& shape) {
  const int64_t size = shape[axis];
  if (index < -size || index >= size) {
    return absl::DataLossError(
        absl::StrCat("index ", index, " is out of axis ", axis, " of ", ShapeToString(shape)));
  }
  return index < 0 ? index + size : index;
}

// What a subscript takes from one row.
class RowPicks {
 public:
  RowPicks(std::vector<Pick> picks, DataIntegers integers)
      : picks_(std::move(picks)), integers_(std::move(integers)) {}

  const std::vector<Pick>& written() const { return picks_; }

  // With the integers that `others`, the arguments behind the tensor, hold. `own`: memory for them.
  absl::StatusOr<absl::Span<const Pick>> Of(absl::Span<const RowValue> others,
                                            std::vector<Pick>* own) const {
    if (integers_.all_constant()) return picks_;
    IntegersRead integers;
    if (absl::Status status = integers_.Read(others, &integers); !status.ok()) return status;
    *own = picks_;
    for (Pick& pick : *own) {
      if (pick.start_from) pick.start = integers[*pick.start_from];
      if (pick.stop_from) pick.stop = integers[*pick.stop_from];
      if (pick.index_from) pick.indices = {integers[*pick.index_from]};
    }
    return *own;
  }

 private:
  const std::vector<Pick> picks_;
  const DataIntegers integers_;
};

absl::StatusOr<Route> RouteOf(const RowPicks& row_picks, absl::Span<const RowValue> arguments,
                              Arena& scratch) {
  std::vector<Pick> own;
  const auto picks = row_picks.Of(arguments.subspan(1), &own);
  if (!picks.ok()) return picks.status();
  const Shape& shape = arguments[0].shape;
  Route route;
  for (const Pick& pick : *picks) {
    if (pick.kind == Pick::Kind::kNewAxis) {
      route.shape.push_back(1);
      continue;
    }
    const int64_t stride = StrideOf(shape, pick.axis);
    if (pick.kind == Pick::Kind::kSlice) {
      const Stretch stretch = StretchOf(pick, shape[pick.axis]);
      route.first += stretch.first * stride;
      route.shape.push_back(stretch.count);
      route.walks.push_back({stretch.count, stretch.step * stride});
      continue;
    }
    auto* const places = scratch.AllocateArray<int64_t>(pick.indices.size());
    for (size_t i = 0; i < pick.indices.size(); ++i) {
      const auto index = IndexIn(pick.indices[i], pick.axis, shape);
      if (!index.ok()) return index.status();
      places[i] = *index * stride;
    }
    if (pick.kind == Pick::Kind::kIndex) {
      route.first += places[0];
      continue;
    }
    const auto count = static_cast<int64_t>(pick.indices.size());
    route.shape.push_back(count);
    route.walks.push_back({count, 0, places});
  }
  const auto elements = CountElements(route.shape);
  if (!elements.ok()) return elements.status();
  return route;
}

// One element after another, `step` elements apart.
template <typename T>
void CopyElements(const Walk& walk, const uint8_t* from, uint8_t* to) {
  InPieces(static_cast<size_t>(walk.count), [&](size_t first, size_t some) {
    for (size_t i = first; i < first + some; ++i) {
      std::memcpy(to + i * sizeof(T),
                  from + walk.place(static_cast<int64_t>(i)) * static_cast<int64_t>(sizeof(T)),
                  sizeof(T));
    }
  });
}

// Of a run beside its bytes, as StopLook counts it.
constexpr uint64_t kRunWork = 8;

// Copies what the walks take, outermost first, `run` bytes at each end of them.
void CopyRuns(absl::Span<const Walk> walks, const uint8_t* from, size_t element_bytes, size_t run,
              StopLook& look, uint8_t*& to) {
  look.Did(run + kRunWork);
  if (walks.empty()) {
    CopyInPieces(to, from, run);
    to += run;
    return;
  }
  const Walk& walk = walks[0];
  const size_t all = static_cast<size_t>(walk.count) * run;
  if (walks.size() == 1 && walk.places == nullptr && walk.step == 0) {
    // The same again and again: twice as much each time.
    CopyInPieces(to, from, run);
    for (size_t done = run; done < all; done *= 2)
      CopyInPieces(to + done, to, std::min(done, all - done));
    to += all;
    return;
  }
  if (walks.size() == 1 && run == element_bytes) {
    switch (run) {
      case 1:
        CopyElements<uint8_t>(walk, from, to);
        break;
      case 2:
        CopyElements<uint16_t>(walk, from, to);
        break;
      case 4:
        CopyElements<uint32_t>(walk, from, to);
        break;
      default:
        CopyElements<uint64_t>(walk, from, to);
        break;
    }
    to += all;
    return;
  }
  for (int64_t i = 0; i < walk.count; ++i) {
    CopyRuns(walks.subspan(1), from + walk.place(i) * static_cast<int64_t>(element_bytes),
             element_bytes, run, look, to);
  }
}

// Copies all that a route takes, which is something; what lies together at the end of the axes goes
// in one piece.
void CopyRoute(const Route& route, const uint8_t* data, size_t element_bytes, uint8_t* to) {
  // Axes that are walked as one.
  absl::InlinedVector<Walk, 6> walks;
  for (const Walk& walk : route.walks) {
    if (walk.count == 1 && walk.places == nullptr) continue;
    if (!walks.empty() && walks.back().places == nullptr && walk.places == nullptr &&
        walks.back().step == walk.step * walk.count) {
      walks.back() = {walks.back().count * walk.count, walk.step};
    } else {
      walks.push_back(walk);
    }
  }
  size_t run = element_bytes;
  if (!walks.empty() && walks.back().places == nullptr && walks.back().step == 1) {
    run *= static_cast<size_t>(walks.back().count);
    walks.pop_back();
  }
  StopLook look;
  CopyRuns(walks, data + static_cast<size_t>(route.first) * element_bytes, element_bytes, run, look,
           to);
}

class PickKernel final : public RowKernel {
 public:
  PickKernel(const TensorType& type, RowPicks picks, bool sets_shape)
      : element_bytes_(DTypeSize(type.dtype)), picks_(std::move(picks)), sets_shape_(sets_shape) {
    const std::vector<Pick>& written = picks_.written();
    is_crop_ = type.shape.size() == 3 && written.size() == 3;
    for (size_t i = 0; is_crop_ && i < written.size(); ++i) {
      const Pick& pick = written[i];
      is_crop_ = pick.kind == Pick::Kind::kSlice && pick.axis == i && pick.step == 1 &&
                 (i < 2 || (!pick.start && !pick.stop && !pick.of_data()));
    }
  }

  absl::Status Run(absl::Span<const RowValue> arguments, Arena& scratch,
                   RowOutput& out) const override {
    const RowValue& in = arguments[0];
    const auto route = RouteOf(picks_, arguments, scratch);
    if (!route.ok()) return route.status();
    if (sets_shape_) out.SetShape(route->shape);
    const auto bytes = static_cast<size_t>(*NumElements(route->shape)) * element_bytes_;
    uint8_t* const to = out.Reserve(bytes);
    if (bytes > 0) CopyRoute(*route, in.data, element_bytes_, to);
    out.Commit();
    return absl::OkStatus();
  }

  // A crop of an image that is read in part.
  bool takes_parts() const override { return is_crop_; }
  absl::Status RunOnPart(PartReader& reader, const Shape& image, absl::Span<const RowValue> others,
                         Arena& scratch, RowOutput& out) const override {
    std::vector<Pick> own;
    const auto picks = picks_.Of(others, &own);
    if (!picks.ok()) return picks.status();
    const Stretch rows = StretchOf((*picks)[0], image[0]);
    const Stretch columns = StretchOf((*picks)[1], image[1]);
    const Shape shape = {rows.count, columns.count, image[2]};
    if (sets_shape_) out.SetShape(shape);
    const auto bytes = static_cast<size_t>(*NumElements(shape)) * element_bytes_;
    if (bytes > 0) {
      return reader.ReadTo(rows.first, columns.first, rows.count, columns.count, bytes, scratch,
                           out);
    }
    out.Reserve(0);
    out.Commit();
    return absl::OkStatus();
  }

 private:
  const size_t element_bytes_;
  const RowPicks picks_;
  const bool sets_shape_;
  bool is_crop_ = false;  // rows and columns of an image, all of each pixel
};

class BroadcastKernel final : public RowKernel {
 public:
  // `to_second`: to the shape of the second argument, as it is.
  BroadcastKernel(size_t element_bytes, size_t axes, bool to_second)
      : element_bytes_(element_bytes), axes_(axes), to_second_(to_second) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena&, RowOutput& out) const override {
    Shape shape(axes_, 1);
    if (to_second_) shape = arguments[1].shape;
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (!Join(arguments[i].shape, &shape)) {
        return absl::DataLossError(
            absl::StrCat("shapes do not broadcast: ", ShapeToString(arguments[i].shape), " to ",
                         ShapeToString(shape)));
      }
    }
    const auto elements = CountElements(shape);
    if (!elements.ok()) return elements.status();
    const Shape& from = arguments[0].shape;
    Route route;
    int64_t stride = 1;
    route.walks.resize(axes_);
    for (size_t i = 0; i < axes_; ++i) {
      const int64_t size = i < from.size() ? from[from.size() - 1 - i] : 1;
      route.walks[axes_ - 1 - i] = {shape[axes_ - 1 - i], size == 1 ? 0 : stride};
      stride *= size;
    }
    out.SetShape(shape);
    const auto bytes = static_cast<size_t>(*elements) * element_bytes_;
    uint8_t* const to = out.Reserve(bytes);
    if (bytes > 0) CopyRoute(route, arguments[0].data, element_bytes_, to);
    out.Commit();
    return absl::OkStatus();
  }

 private:
  // Whether the one broadcasts to the other, whose axes of 1 it widens where it may.
  bool Join(const Shape& from, Shape* shape) const {
    for (size_t i = 0; i < from.size(); ++i) {
      const int64_t size = from[from.size() - 1 - i];
      int64_t& wide = (*shape)[axes_ - 1 - i];
      if (size == wide || size == 1) continue;
      if (wide != 1 || to_second_) return false;
      wide = size;
    }
    return true;
  }

  const size_t element_bytes_;
  const size_t axes_;
  const bool to_second_;
};

BoundRowFunction Broadcast(DType dtype, const Shape& shape, bool to_second) {
  BoundRowFunction bound;
  bound.type = {dtype, shape};
  bound.kernel = std::make_shared<BroadcastKernel>(DTypeSize(dtype), shape.size(), to_second);
  return bound;
}

class PickStrings final : public RowKernel {
 public:
  PickStrings(RowPicks picks, const TensorType& result)
      : picks_(std::move(picks)), is_scalar_(result.shape.empty()) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena& scratch,
                   RowOutput& out) const override {
    const RowValue& in = arguments[0];
    const auto route = RouteOf(picks_, arguments, scratch);
    if (!route.ok()) return route.status();
    if (!is_scalar_) out.SetShape(route->shape);
    const absl::Span<const absl::string_view> strings = StringsOf(in, scratch);
    const auto count = static_cast<size_t>(*NumElements(route->shape));
    auto* const taken = scratch.AllocateArray<absl::string_view>(count);
    absl::string_view* end = taken;
    if (count > 0) List(route->walks, route->first, strings, end);
    return PutStrings({taken, count}, is_scalar_, out);
  }

 private:
  static void List(absl::Span<const Walk> walks, int64_t at,
                   absl::Span<const absl::string_view> strings, absl::string_view*& end) {
    if (walks.empty()) {
      *end++ = strings[static_cast<size_t>(at)];
      return;
    }
    for (int64_t i = 0; i < walks[0].count; ++i)
      List(walks.subspan(1), at + walks[0].place(i), strings, end);
  }

  const RowPicks picks_;
  const bool is_scalar_;
};

}  // namespace

Stretch StretchOf(const Pick& slice, int64_t size) {
  const int64_t lowest = slice.step > 0 ? 0 : -1;
  const int64_t highest = slice.step > 0 ? size : size - 1;
  const auto cut = [&](std::optional<int64_t> bound, int64_t absent) {
    if (!bound) return absent;
    return std::clamp(*bound < 0 ? *bound + size : *bound, lowest, highest);
  };
  const int64_t first = cut(slice.start, slice.step > 0 ? 0 : size - 1);
  const int64_t stop = cut(slice.stop, slice.step > 0 ? size : -1);
  // Longer steps take the first element alone, too.
  const int64_t step = std::clamp(slice.step, -size - 1, size + 1);
  const int64_t distance = step > 0 ? stop - first : first - stop;
  const int64_t length = std::abs(step);
  if (distance <= 0) return {0, step, 0};
  return {first, step, (distance + length - 1) / length};
}

BoundRowFunction BindPicks(const TensorType& type, std::vector<Pick> picks, DataIntegers integers) {
  BoundRowFunction bound;
  bound.type.dtype = type.dtype;
  for (const Pick& pick : picks) {
    switch (pick.kind) {
      case Pick::Kind::kSlice: {
        const int64_t size = type.shape[pick.axis];
        bound.type.shape.push_back(
            size == kUnknownSize || pick.of_data() ? kUnknownSize : StretchOf(pick, size).count);
        break;
      }
      case Pick::Kind::kList:
        bound.type.shape.push_back(static_cast<int64_t>(pick.indices.size()));
        break;
      case Pick::Kind::kNewAxis:
        bound.type.shape.push_back(1);
        break;
      case Pick::Kind::kIndex:
        break;
    }
  }
  bound.tensor_arguments = {0};
  bound.tensor_arguments.insert(bound.tensor_arguments.end(), integers.positions().begin(),
                                integers.positions().end());
  RowPicks row_picks(std::move(picks), std::move(integers));
  if (type.dtype == DType::kString) {
    bound.kernel = std::make_shared<PickStrings>(std::move(row_picks), bound.type);
  } else {
    bound.kernel =
        std::make_shared<PickKernel>(type, std::move(row_picks), HasUnknownSize(bound.type.shape));
  }
  return bound;
}

BoundRowFunction BindBroadcast(DType dtype, const Shape& shape) {
  return Broadcast(dtype, shape, /*to_second=*/false);
}

BoundRowFunction BindBroadcastTo(DType dtype, const Shape& shape) {
  return Broadcast(dtype, shape, /*to_second=*/true);
}

std::string PicksToString(absl::Span<const Pick> picks) {
  std::string text;
  for (const Pick& pick : picks) {
    absl::StrAppend(&text, " ", static_cast<int>(pick.kind), " of ", pick.axis, ":");
    for (const std::optional<int64_t>& bound : {pick.start, pick.stop})
      absl::StrAppend(&text, bound ? absl::StrCat(*bound) : "", ":");
    absl::StrAppend(&text, pick.step, " ", absl::StrJoin(pick.indices, ","));
    for (const std::optional<size_t>& from : {pick.start_from, pick.stop_from, pick.index_from})
      absl::StrAppend(&text, from ? absl::StrCat(" of ", *from) : "", ";");
  }
  return text;
}

}  // namespace penstock::expr
