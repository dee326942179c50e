#include <fmt/format.h>

#include <memory>

#include "tools/command.h"

namespace medley::cli {

namespace {
/// One command line prefix ("trace show") and what may follow it.
struct Node {
  std::string path;
  std::vector<std::string> words;  ///< subcommands, or fixed values of the first argument
  std::vector<std::string> options;
  std::vector<std::string> descriptions;  ///< of the options
};

const std::vector<std::string>* fixed_values(const std::string& path) {
  static const std::vector<std::string> kList = {"devices",  "links",      "nodes",
                                                 "backends", "topologies", "models",
                                                 "policies", "formats",    "scenarios"};
  static const std::vector<std::string> kShow = {"device",  "link",     "node",
                                                 "backend", "topology", "model"};
  static const std::vector<std::string> kShells = {"bash", "zsh", "fish"};
  if (path == "list") return &kList;
  if (path == "show") return &kShow;
  if (path == "completion") return &kShells;
  return nullptr;
}

void collect(const CLI::App& app, const std::string& path, std::vector<Node>& all) {
  Node node;
  node.path = path;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    node.words.push_back(sub->get_name());
  }
  if (const auto* values = fixed_values(path)) node.words = *values;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      node.options.push_back("--" + name);
      node.descriptions.push_back(option->get_description());
    }
  }
  all.push_back(std::move(node));
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    collect(*sub, path.empty() ? sub->get_name() : path + " " + sub->get_name(), all);
  }
}

std::string joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

// clang-format off
constexpr const char* kBashHead = R"sh(# bash completion for medley:  source <(medley completion bash)
_medley() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}
  local path='' words='' options='' first=1
  if ((COMP_CWORD > 1)); then path=${COMP_WORDS[1]}; first=2; fi
  if [[ $path == trace ]] && ((COMP_CWORD > 2)); then path="trace ${COMP_WORDS[2]}"; first=3; fi
  case $prev in
    --format) COMPREPLY=($(compgen -W 'table json csv' -- "$cur")); return ;;
    --requests) COMPREPLY=($(compgen -W 'all none sample:' -- "$cur")); return ;;
    --out|--catalog|--zoo) COMPREPLY=($(compgen -d -- "$cur")); return ;;
  esac
  if [[ $path == show ]] && ((COMP_CWORD == 3)); then
    local IFS=$'\n'
    COMPREPLY=($(compgen -W "$("${COMP_WORDS[0]}" list "${prev/topology/topologie}s" --format csv 2>/dev/null |
      tail -n +2 | cut -d, -f1)" -- "$cur"))
    COMPREPLY=("${COMPREPLY[@]// /\\ }")
    return
  fi
  case $path in
)sh";
constexpr const char* kBashTail = R"sh(  esac
  if [[ $cur == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$cur"))
  elif [[ -n $words ]] && ((COMP_CWORD == first)); then
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
  else
    COMPREPLY=($(compgen -f -- "$cur"))
  fi
}
complete -o filenames -F _medley medley
)sh";
constexpr const char* kZshHead = R"sh(#compdef medley
# zsh completion for medley:  medley completion zsh > "${fpath[1]}/_medley"
_medley() {
  local key="" first=2
  local -a choices options
  if (( CURRENT > 2 )); then key=${words[2]}; first=3; fi
  if [[ $key == trace ]] && (( CURRENT > 3 )); then key="trace ${words[3]}"; first=4; fi
  if [[ $key == show ]] && (( CURRENT == 4 )); then
    choices=("${(@f)$(${words[1]} list ${words[3]/topology/topologie}s --format csv 2>/dev/null |
      tail -n +2 | cut -d, -f1)}")
    compadd -a choices
    return
  fi
  case $key in
)sh";
constexpr const char* kZshTail = R"sh(  esac
  if (( CURRENT == first && $#choices )) && [[ ${words[CURRENT]} != -* ]]; then
    compadd -a choices
  else
    _arguments $options '*:file:_files'
  fi
}
if [[ $funcstack[1] == _medley ]]; then _medley "$@"; else compdef _medley medley; fi
)sh";
// clang-format on

std::string bash_script(const std::vector<Node>& nodes) {
  std::string text = kBashHead;
  for (const Node& n : nodes) {
    text += fmt::format("    '{}') words='{}'; options='{}' ;;\n", n.path, joined(n.words),
                        joined(n.options));
  }
  return text + kBashTail;
}

std::string shell_quoted(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return "'" + out + "'";
}

std::string zsh_script(const std::vector<Node>& nodes) {
  std::string text = kZshHead;
  for (const Node& n : nodes) {
    std::string options;
    for (std::size_t i = 0; i < n.options.size(); ++i) {
      std::string option = n.options[i] + "[";
      for (const char c : n.descriptions[i]) {
        if (c == ':' || c == '[' || c == ']') option += '\\';
        option += c;
      }
      options += " " + shell_quoted(option + "]");
    }
    text += fmt::format("    {}) choices=({}); options=({} ) ;;\n", shell_quoted(n.path),
                        joined(n.words), options);
  }
  return text + kZshTail;
}

std::string fish_script(const std::vector<Node>& nodes) {
  std::string out = "# fish completion for medley:  medley completion fish | source\n";
  for (const Node& n : nodes) {
    std::string condition = "__fish_use_subcommand";
    if (!n.path.empty()) {
      const std::size_t space = n.path.find(' ');
      condition = space == std::string::npos
                      ? "__fish_seen_subcommand_from " + n.path
                      : "__fish_seen_subcommand_from " + n.path.substr(0, space) +
                            "; and __fish_seen_subcommand_from " + n.path.substr(space + 1);
    }
    for (const std::string& word : n.words) {
      out += fmt::format("complete -c medley -n {} {}-a {}\n", shell_quoted(condition),
                         n.path.empty() ? "-f " : "", word);
    }
    for (std::size_t i = 0; i < n.options.size(); ++i) {
      out += fmt::format("complete -c medley -n {} -l {} -d {}\n", shell_quoted(condition),
                         n.options[i].substr(2), shell_quoted(n.descriptions[i]));
    }
  }
  return out;
}
}  // namespace

void add_completion(CLI::App& app, Action& action) {
  auto shell = std::make_shared<std::string>();
  CLI::App& c = *app.add_subcommand("completion", "print a completion script for a shell");
  c.add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->type_name("SHELL")
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  c.callback([shell, &app, &action] {
    action = [shell, &app] {
      std::vector<Node> nodes;
      collect(app, "", nodes);
      print(*shell == "bash"  ? bash_script(nodes)
            : *shell == "zsh" ? zsh_script(nodes)
                              : fish_script(nodes));
      return kOk;
    };
  });
}

}  // namespace medley::cli
