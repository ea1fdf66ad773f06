// Lines of `penstock top` as a terminal is to show them: cut to its size, with colours, from the
// chosen pipeline on.
//
// Threads:  any; no state.
// Limits:   a character takes one column.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "client/ctl/top/top_lines.h"

namespace penstock::ctl {

struct TopView {
  size_t rows = 24;
  size_t columns = 80;
  bool colours = true;
  size_t chosen =
      0;  // the number of a pipeline among those of the lines; beyond the last one: the last one
  bool has_keys = false;    // a bar of keys stands below
  std::string notice = {};  // what the bar says besides
};

// From the terminal's first row on, with what was there before wiped. Control characters of names
// are shown, and not done.
std::string TopScreen(const std::vector<TopLine>& lines, const TopView& view);

}  // namespace penstock::ctl
