// Which features a tf.train.Example has, for errors that say so.
//
// Threads:  a function without state.
// Cost:     one pass over the message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace penstock {

// The keys of a serialized Example in their sequence, quoted and with commas between: "id",
// "image/encoded". Of more than twelve the first ones and how many more there are; "no features" of
// a message without any. What is malformed ends the list.
std::string ListExampleKeys(const uint8_t* data, size_t size);

}  // namespace penstock
