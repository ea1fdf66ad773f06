// Numbers of the deflate format (RFC 1951, 3.2.5).
//
// Threads:  constants.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock::deflate {

inline constexpr uint32_t kEndOfBlock = 256;
inline constexpr uint32_t kFirstLength = 257;
inline constexpr uint32_t kNumLengths = 29;
inline constexpr uint32_t kNumDistances = 30;
inline constexpr size_t kDistanceMax = 32768;

// A length or a distance: the least one that its symbol stands for, to which as many bits behind
// the symbol are added.
struct Range {
  uint16_t base;
  uint8_t extra_bits;

  uint32_t At(uint64_t bits) const {
    return base + static_cast<uint32_t>(bits & ((uint64_t{1} << extra_bits) - 1));
  }
};

inline constexpr Range kLengths[kNumLengths] = {
    {3, 0},  {4, 0},  {5, 0},  {6, 0},   {7, 0},   {8, 0},   {9, 0},   {10, 0},  {11, 1}, {13, 1},
    {15, 1}, {17, 1}, {19, 2}, {23, 2},  {27, 2},  {31, 2},  {35, 3},  {43, 3},  {51, 3}, {59, 3},
    {67, 4}, {83, 4}, {99, 4}, {115, 4}, {131, 5}, {163, 5}, {195, 5}, {227, 5}, {258, 0}};

inline constexpr Range kDistances[kNumDistances] = {
    {1, 0},     {2, 0},     {3, 0},     {4, 0},      {5, 1},      {7, 1},
    {9, 2},     {13, 2},    {17, 3},    {25, 3},     {33, 4},     {49, 4},
    {65, 5},    {97, 5},    {129, 6},   {193, 6},    {257, 7},    {385, 7},
    {513, 8},   {769, 8},   {1025, 9},  {1537, 9},   {2049, 10},  {3073, 10},
    {4097, 11}, {6145, 11}, {8193, 12}, {12289, 12}, {16385, 13}, {24577, 13}};

}  // namespace penstock::deflate
