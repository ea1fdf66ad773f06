// What the command writes to a terminal. Names, paths and messages come from data and from others:
// on a terminal their control characters are shown and not done. What goes into a file or a pipe
// stays as it is.
//
// Threads:  GuardTerminals() before any other thread; the rest as stdio.
// Limits:   a C1 character whose two bytes are written by two calls is not known.
#pragma once

#include <cstdio>
#include <string>

namespace penstock::ctl {

// From now on stdout and stderr show control characters, where they are terminals.
void GuardTerminals();

// Writes to the terminal as it is: for what the command itself draws. False where it cannot be
// written.
bool Draw(FILE* stream, const std::string& text);

}  // namespace penstock::ctl
