#include "client/ctl/grammar/completion.h"

#include <algorithm>
#include <cstdio>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace penstock::ctl {
namespace {

constexpr char kPipelines[] = "%s list 2>/dev/null | awk 'NR > 1 { print $1 }'";

std::string Pipelines(const std::string& program) {
  return absl::StrReplaceAll(kPipelines, {{"%s", program}});
}

// Names of commands and options have no letter that a shell takes for anything.
std::string Bash(const std::string& program, const std::vector<CommandOutline>& commands) {
  std::vector<std::string> names, root_options;
  std::string options;
  std::vector<std::string> of_pipelines;
  for (const CommandOutline& command : commands) {
    std::vector<std::string> words;
    for (const OptionOutline& option : command.options) words.push_back(option.name);
    if (command.name.empty()) {
      root_options = words;
      continue;
    }
    names.push_back(command.name);
    if (command.takes_pipeline) of_pipelines.push_back(command.name);
    absl::StrAppend(&options, "    ", command.name, ") offered='", absl::StrJoin(words, " "),
                    "' ;;\n");
  }
  const std::string function = absl::StrCat("_", program);
  return absl::StrCat(
      "# Completion of ", program, " for bash: source <(", program, " completion bash)\n", function,
      "() {\n"
      "  local cur=${COMP_WORDS[COMP_CWORD]} command='' offered='' before='' word\n"
      "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
      "    if [[ $word != -* && $before != --socket ]]; then command=$word; break; fi\n"
      "    before=$word\n"
      "  done\n"
      "  COMPREPLY=()\n"
      "  [[ ${COMP_WORDS[COMP_CWORD-1]} == --socket ]] && return\n"
      "  case $command in\n"
      "    '') offered='",
      absl::StrJoin(names, " "), " help ", absl::StrJoin(root_options, " "),
      "' ;;\n    help) offered='", absl::StrJoin(names, " "), "' ;;\n", options,
      "  esac\n"
      "  if [[ $cur == -* || -z $command || $command == help ]]; then\n"
      "    COMPREPLY=($(compgen -W \"$offered\" -- \"$cur\"))\n"
      "    return\n"
      "  fi\n"
      "  case $command in\n    ",
      absl::StrJoin(of_pipelines, "|"), ") COMPREPLY=($(compgen -W \"$(", Pipelines(program),
      ")\" -- \"$cur\")) ;;\n"
      "  esac\n"
      "}\n"
      "complete -o default -F ",
      function, " ", program, "\n");
}

std::string FishQuoted(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"'", "\\'"}}), "'");
}

std::string Fish(const std::string& program, const std::vector<CommandOutline>& commands) {
  std::string out = absl::StrCat("# Completion of ", program, " for fish: ", program,
                                 " completion fish | source\n");
  for (const CommandOutline& command : commands) {
    std::string when = "-n __fish_use_subcommand";
    if (!command.name.empty()) {
      absl::StrAppend(&out, "complete -c ", program, " -f -n __fish_use_subcommand -a ",
                      command.name, " -d ", FishQuoted(command.help), "\n");
      when = absl::StrCat("-n '__fish_seen_subcommand_from ", command.name, "'");
    }
    for (const OptionOutline& option : command.options) {
      if (option.name.substr(0, 2) != "--") continue;
      absl::StrAppend(&out, "complete -c ", program, " ", when, " -l ", option.name.substr(2),
                      option.takes_value ? " -r" : "", " -d ", FishQuoted(option.help), "\n");
    }
    if (command.takes_pipeline) {
      absl::StrAppend(&out, "complete -c ", program, " -f ", when, " -a \"(",
                      absl::StrReplaceAll(Pipelines(program), {{"$", "\\$"}}), ")\"\n");
    }
  }
  return out;
}

}  // namespace

std::string CompletionScript(const std::string& shell, const std::string& program,
                             const std::vector<CommandOutline>& commands) {
  if (shell == "fish") return Fish(program, commands);
  const std::string bash = Bash(program, commands);
  if (shell == "bash") return bash;
  return absl::StrCat(
      "# For zsh, by its emulation of bash's completion.\n"
      "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n",
      bash);
}

void AddCompletion(Command root, const CommandLine& line) {
  Command command =
      root.AddCommand("completion", "A script that has a shell complete the command line");
  auto shell = std::make_shared<std::string>();
  command.Add("SHELL", shell.get(), "bash, zsh or fish")
      .Required()
      .Checked([](const std::string& word) -> std::string {
        if (word == "bash" || word == "zsh" || word == "fish") return "";
        return "expected bash, zsh or fish, found " + word;
      });
  command.Runs([&line, shell] {
    const std::string script = CompletionScript(*shell, "penstock", line.Outline());
    std::fputs(script.c_str(), stdout);
    return 0;
  });
}

}  // namespace penstock::ctl
