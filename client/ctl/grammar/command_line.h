// The grammar of a command line: commands, their arguments, what they run. It stands before CLI11,
// whose header alone takes six seconds to compile, so that a command's file takes one.
//
// Threads:  one.
// Owns:     the grammar; values that options write to are the caller's and outlive the parsing.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace penstock::ctl {

// One option that was added, for what is to be said about it besides.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option Required();
  // Help shows the value that the variable has now.
  Option WithDefault();
  Option InRange(int least, int most);
  Option InRange(double least, double most);
  Option Positive();
  Option Needs(const Option& other);
  Option Excludes(const Option& other);
  // Of a list: each word has the option's name before it.
  Option OneByOne();
  // "" for a word that is good, else what is wrong with it.
  Option Checked(std::string (*check)(const std::string& word));

 private:
  CLI::Option* option_;
};

// A command, or the whole line.
class Command {
 public:
  // One of the commands that are added must then be named.
  Command AddCommand(const std::string& name, const std::string& help);

  // `name` is "--name", or "NAME" for a word without a dash. T: std::string, int, int64_t,
  // uint32_t, uint64_t, double, a std::optional<uint64_t>, or a std::vector<std::string>, which
  // takes several words.
  template <typename T>
  Option Add(const std::string& name, T* value, const std::string& help);
  Option AddFlag(const std::string& name, bool* value, const std::string& help);

  // Exactly one of the options that `add` adds must be given.
  void OneOf(const std::function<void(Command group)>& add);

  // Parsing a line that asks for this command runs it; what it returns is the exit code.
  void Runs(std::function<int()> run);
  // The same, with all words behind the command's name, options and --help among them, of which
  // none is read here.
  void HandsOn(std::function<int(std::vector<std::string> words)> run);

 private:
  friend class CommandLine;
  Command(CLI::App* app, int* exit_code) : app_(app), exit_code_(exit_code) {}

  CLI::App* app_;
  int* exit_code_;
};

// What can be said of the grammar, for shells that complete it.
struct OptionOutline {
  std::string name;  // "--files", or "-h"
  std::string help;
  bool takes_value = false;
};
struct CommandOutline {
  std::string name;  // "": the options of all commands
  std::string help;
  std::vector<OptionOutline> options;
  bool takes_pipeline = false;  // its first word without a dash is NAME
};

class CommandLine {
 public:
  // The line's options may stand behind a command's name too. One of them is --version.
  CommandLine(const std::string& program, const std::string& help);
  ~CommandLine();

  Command root();
  std::vector<CommandOutline> Outline() const;

  // Runs the command that is asked for and returns its exit code; 0 for --help and --version, 2
  // with a message on stderr for a line that fits no command, 1 where stdout cannot be written.
  int Run(int argc, char** argv);

 private:
  const std::unique_ptr<CLI::App> app_;
  int exit_code_ = 0;
};

}  // namespace penstock::ctl
