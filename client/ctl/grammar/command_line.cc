#include "client/ctl/grammar/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <sstream>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/signature.h"
#include "client/ctl/grammar/exit_code.h"

namespace penstock::ctl {
namespace {

// A full disk shows when what is buffered is written, which is after a command has said that all is
// well.
bool FlushStdout() { return std::fflush(stdout) == 0 && std::ferror(stdout) == 0; }

template <typename T>
struct Value {
  using Type = T;
};
template <typename T>
struct Value<std::optional<T>> {
  using Type = T;
};

// CLI11 takes octal and hexadecimal numbers, and of 64 bits a negative one for a large one.
template <typename T>
std::string ReadDecimal(std::string& word) {
  T value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size()) {
    return absl::StrCat("expected an integer from ", std::numeric_limits<T>::min(), " to ",
                        std::numeric_limits<T>::max(), ", found ", word);
  }
  word = absl::StrCat(value);
  return "";
}

}  // namespace

Option Option::Required() {
  option_->required();
  return *this;
}

Option Option::WithDefault() {
  option_->capture_default_str();
  return *this;
}

Option Option::InRange(int least, int most) {
  option_->check(CLI::Range(least, most));
  return *this;
}

Option Option::InRange(double least, double most) {
  option_->check(CLI::Range(least, most));
  // Which lets through what is no number.
  option_->check([](const std::string& word) {
    double value = 0;
    return CLI::detail::lexical_cast(word, value) && std::isnan(value) ? "not a number" : "";
  });
  return *this;
}

Option Option::Positive() {
  option_->check(CLI::Validator(
      [](std::string& word) -> std::string {
        double value = 0;
        if (CLI::detail::lexical_cast(word, value) && value > 0) return "";
        return "expected a number above 0, found " + word;
      },
      "POSITIVE"));
  return *this;
}

Option Option::Excludes(const Option& other) {
  option_->excludes(other.option_);
  return *this;
}

Option Option::Needs(const Option& other) {
  option_->needs(other.option_);
  return *this;
}

Option Option::OneByOne() {
  option_->expected(1)->take_all();
  return *this;
}

Option Option::Checked(std::string (*check)(const std::string& word)) {
  option_->check(std::function<std::string(const std::string&)>(check));
  return *this;
}

Command Command::AddCommand(const std::string& name, const std::string& help) {
  app_->require_subcommand(1);
  return Command(app_->add_subcommand(name, help), exit_code_);
}

template <typename T>
Option Command::Add(const std::string& name, T* value, const std::string& help) {
  CLI::Option* option = app_->add_option(name, *value, help);
  using Number = typename Value<T>::Type;
  if constexpr (std::is_integral_v<Number>)
    option->transform(CLI::Validator(ReadDecimal<Number>, ""));
  return Option(option);
}

template Option Command::Add(const std::string&, std::string*, const std::string&);
template Option Command::Add(const std::string&, std::vector<std::string>*, const std::string&);
template Option Command::Add(const std::string&, int*, const std::string&);
template Option Command::Add(const std::string&, int64_t*, const std::string&);
template Option Command::Add(const std::string&, uint32_t*, const std::string&);
template Option Command::Add(const std::string&, uint64_t*, const std::string&);
template Option Command::Add(const std::string&, double*, const std::string&);
template Option Command::Add(const std::string&, std::optional<int>*, const std::string&);
template Option Command::Add(const std::string&, std::optional<uint64_t>*, const std::string&);

Option Command::AddFlag(const std::string& name, bool* value, const std::string& help) {
  return Option(app_->add_flag(name, *value, help));
}

void Command::OneOf(const std::function<void(Command group)>& add) {
  CLI::Option_group* group = app_->add_option_group("input");
  add(Command(group, exit_code_));
  group->require_option(1);
}

void Command::Runs(std::function<int()> run) {
  app_->callback([run = std::move(run), exit_code = exit_code_] { *exit_code = run(); });
}

void Command::HandsOn(std::function<int(std::vector<std::string> words)> run) {
  app_->prefix_command()->fallthrough(false)->set_help_flag();
  app_->callback([run = std::move(run), app = app_, exit_code = exit_code_] {
    *exit_code = run(app->remaining());
  });
}

CommandLine::CommandLine(const std::string& program, const std::string& help)
    : app_(std::make_unique<CLI::App>(help, program)) {
  app_->fallthrough();
  app_->set_version_flag("--version", program + " " PENSTOCK_RELEASE, "Print the release and exit");
}

CommandLine::~CommandLine() = default;

Command CommandLine::root() { return Command(app_.get(), &exit_code_); }

std::vector<CommandOutline> CommandLine::Outline() const {
  std::vector<const CLI::App*> apps = {app_.get()};
  for (const CLI::App* command : app_->get_subcommands(nullptr)) apps.push_back(command);
  std::vector<CommandOutline> outlines;
  for (const CLI::App* app : apps) {
    CommandOutline& outline = outlines.emplace_back();
    if (app != app_.get()) outline.name = app->get_name();
    outline.help = app->get_description();
    std::vector<const CLI::Option*> options = app->get_options();
    // Those of which one must be given stand in a group of their own.
    for (const CLI::App* group : app->get_subcommands(nullptr)) {
      if (!group->get_name().empty()) continue;
      for (const CLI::Option* option : group->get_options()) options.push_back(option);
    }
    for (const CLI::Option* option : options) {
      if (option->get_positional()) {
        outline.takes_pipeline |= option->get_name() == "NAME";
      } else if (!option->get_lnames().empty()) {
        outline.options.push_back({"--" + option->get_lnames()[0], option->get_description(),
                                   option->get_items_expected_max() > 0});
      }
    }
  }
  return outlines;
}

namespace {

// For each word that is no option: the nearest of those that the command has.
void NameTheNearest(const CLI::App& app, const std::vector<CommandOutline>& outlines,
                    const std::vector<std::string>& words) {
  const std::vector<CLI::App*> commands = app.get_subcommands();
  std::vector<std::string> known;
  for (const CommandOutline& outline : outlines) {
    if (!outline.name.empty() && (commands.empty() || outline.name != commands[0]->get_name()))
      continue;
    for (const OptionOutline& option : outline.options) known.push_back(option.name);
  }
  for (const std::string& word : words) {
    const std::string name = word.substr(0, word.find('='));
    const std::string nearest = DidYouMean(name, known);
    if (!name.starts_with("--") || nearest.empty()) continue;
    std::fprintf(stderr, "%s: unknown option: %s%s\n", app.get_name().c_str(), name.c_str(),
                 nearest.c_str());
  }
}

}  // namespace

int CommandLine::Run(int argc, char** argv) {
  int code = 0;
  try {
    // `help COMMAND` is `COMMAND --help`.
    std::vector<std::string> words(argv + 1, argv + argc);
    if (!words.empty() && words.front() == "help") {
      words.erase(words.begin());
      words.push_back("--help");
    }
    std::reverse(words.begin(), words.end());
    app_->parse(std::move(words));
    code = exit_code_;
  } catch (const CLI::ParseError& error) {
    // Which says no more than that a command is needed.
    const std::vector<std::string> unknown = app_->remaining(true);
    if (error.get_name() == "RequiredError" && !unknown.empty()) {
      std::vector<std::string> commands;
      for (const CLI::App* command : app_->get_subcommands(nullptr))
        commands.push_back(command->get_name());
      std::fprintf(stderr, "%s: unknown word: %s%s\n", app_->get_name().c_str(),
                   unknown.front().c_str(), DidYouMean(unknown.front(), commands).c_str());
    }
    // Whose name is that of the program.
    if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr)
      NameTheNearest(*app_, Outline(), unknown);
    // By stdio, as all else.
    std::ostringstream out, problem;
    code = app_->exit(error, out, problem) == 0 ? kDone : kUsage;
    std::fputs(out.str().c_str(), stdout);
    std::fputs(problem.str().c_str(), stderr);
  }
  if (FlushStdout()) return code;
  std::fprintf(stderr, "%s: cannot write to stdout\n", app_->get_name().c_str());
  return code == kDone ? kFailed : code;
}

}  // namespace penstock::ctl
