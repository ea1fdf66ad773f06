// The commands of `penstock` that talk to a daemon. Each stands in the file of its name and adds
// itself to the command line; parsing a command line that asks for it runs it.
#pragma once

#include <string>

#include "client/ctl/grammar/command_line.h"

namespace penstock::ctl {

// `socket`: what --socket says, empty where it was not given; known when a command runs.
void AddCreate(Command root, const std::string& socket);
void AddDelete(Command root, const std::string& socket);
void AddGet(Command root, const std::string& socket);
void AddList(Command root, const std::string& socket);
void AddPause(Command root, const std::string& socket);
void AddResume(Command root, const std::string& socket);
void AddDrain(Command root, const std::string& socket);
void AddSeek(Command root, const std::string& socket);
void AddUpdate(Command root, const std::string& socket);
void AddHistory(Command root, const std::string& socket);
void AddConsumers(Command root, const std::string& socket);
void AddDetach(Command root, const std::string& socket);
void AddSlow(Command root, const std::string& socket);
void AddEvents(Command root, const std::string& socket);
void AddGroups(Command root, const std::string& socket);
void AddSample(Command root, const std::string& socket);
void AddExplain(Command root, const std::string& socket);
void AddProfile(Command root, const std::string& socket);
void AddLogLevel(Command root, const std::string& socket);
void AddRun(Command root, const std::string& socket);
void AddSelftest(Command root, const std::string& socket);
void AddSkipped(Command root, const std::string& socket);
void AddStats(Command root, const std::string& socket);
void AddValidate(Command root, const std::string& socket);
void AddWhen(Command root, const std::string& socket);
void AddWhere(Command root, const std::string& socket);

}  // namespace penstock::ctl
