#include "server/codec/example_wire.h"

#include <algorithm>

namespace penstock::example_wire {

using wire::ReadSize;
using wire::ReadTag;
using wire::ReadVarint;
using wire::SkipField;

namespace {

const uint8_t* ParseBytesList(const uint8_t* p, const uint8_t* end, Sink& sink) {
  while (p < end) {
    uint32_t tag;
    if ((p = ReadTag(p, end, &tag)) == nullptr) return nullptr;
    if (tag == kBytesTag) {
      size_t size;
      if ((p = ReadSize(p, end, &size)) == nullptr) return nullptr;
      sink.AddBytes(p, size);
      p += size;
    } else if ((p = SkipField(tag, p, end, kListDepth - sink.levels_above)) == nullptr) {
      return nullptr;
    }
  }
  return p;
}

const uint8_t* ParseInt64List(const uint8_t* p, const uint8_t* end, Sink& sink) {
  uint64_t value;
  while (p < end) {
    uint32_t tag;
    if ((p = ReadTag(p, end, &tag)) == nullptr) return nullptr;
    if (tag == kPackedTag) {
      size_t size;
      if ((p = ReadSize(p, end, &size)) == nullptr) return nullptr;
      for (const uint8_t* const packed_end = p + size; p < packed_end;) {
        if ((p = ReadVarint(p, packed_end, &value)) == nullptr) return nullptr;
        sink.Add<int64_t>(static_cast<int64_t>(value));
      }
    } else if (tag == kInt64Tag) {
      if ((p = ReadVarint(p, end, &value)) == nullptr) return nullptr;
      sink.Add<int64_t>(static_cast<int64_t>(value));
    } else if ((p = SkipField(tag, p, end, kListDepth - sink.levels_above)) == nullptr) {
      return nullptr;
    }
  }
  return p;
}

const uint8_t* ParseFloatList(const uint8_t* p, const uint8_t* end, Sink& sink) {
  while (p < end) {
    uint32_t tag;
    if ((p = ReadTag(p, end, &tag)) == nullptr) return nullptr;
    size_t size = sizeof(float);
    if (tag == kPackedTag) {
      if ((p = ReadSize(p, end, &size)) == nullptr || size % sizeof(float) != 0) return nullptr;
    } else if (tag == kFloatTag) {
      if (end - p < static_cast<ptrdiff_t>(sizeof(float))) return nullptr;
    } else {
      if ((p = SkipField(tag, p, end, kListDepth - sink.levels_above)) == nullptr) return nullptr;
      continue;
    }
    const int64_t count = size / sizeof(float);
    const int64_t room = std::max<int64_t>(sink.capacity - sink.num_values, 0);
    if (room > 0 && count > 0) {
      std::memcpy(static_cast<float*>(sink.numbers) + sink.num_values, p,
                  std::min(room, count) * sizeof(float));
    }
    sink.num_values += count;
    p += size;
  }
  return p;
}

}  // namespace

const uint8_t* ParseFeature(const uint8_t* p, const uint8_t* end, Sink& sink) {
  // Numbers of another kind than the wanted one are only counted.
  const int64_t capacity = sink.capacity;
  while (p < end) {
    uint32_t tag;
    if ((p = ReadTag(p, end, &tag)) == nullptr) return nullptr;
    if (tag != kBytesListTag && tag != kFloatListTag && tag != kInt64ListTag) {
      if ((p = SkipField(tag, p, end, kFeatureDepth - sink.levels_above)) == nullptr)
        return nullptr;
      continue;
    }
    size_t size;
    if ((p = ReadSize(p, end, &size)) == nullptr) return nullptr;
    const DType kind = tag == kBytesListTag   ? DType::kString
                       : tag == kFloatListTag ? DType::kFloat32
                                              : DType::kInt64;
    sink.Enter(kind);
    sink.capacity = kind == sink.wanted ? capacity : 0;
    p = kind == DType::kString    ? ParseBytesList(p, p + size, sink)
        : kind == DType::kFloat32 ? ParseFloatList(p, p + size, sink)
                                  : ParseInt64List(p, p + size, sink);
    sink.capacity = capacity;
    if (p == nullptr) return nullptr;
  }
  return p;
}

const uint8_t* WalkEntry(const uint8_t* p, const uint8_t* end, Sink& sink, std::string_view* key) {
  *key = {};
  while (p < end) {
    uint32_t tag;
    if ((p = ReadTag(p, end, &tag)) == nullptr) return nullptr;
    if (tag == kKeyTag || tag == kValueTag) {
      size_t size;
      if ((p = ReadSize(p, end, &size)) == nullptr) return nullptr;
      if (tag == kKeyTag) {
        if (!wire::IsUtf8(p, size)) return nullptr;
        *key = std::string_view(reinterpret_cast<const char*>(p), size);
        p += size;
      } else if ((p = ParseFeature(p, p + size, sink)) == nullptr) {
        return nullptr;
      }
    } else if ((p = SkipField(tag, p, end, kEntryDepth)) == nullptr) {
      return nullptr;
    }
  }
  return p;
}

const char* KindName(DType kind) {
  return kind == DType::kString ? "bytes" : kind == DType::kFloat32 ? "float" : "int64";
}

}  // namespace penstock::example_wire
