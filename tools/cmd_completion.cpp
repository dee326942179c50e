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
  static const std::vector<std::string> kList = {"devices", "links",    "nodes",   "backends",
                                                 "models",  "policies", "formats", "scenarios"};
  static const std::vector<std::string> kShow = {"device", "link", "node", "backend", "model"};
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

std::string bash_script(const std::vector<Node>& nodes) {
  std::string cases;
  for (const Node& n : nodes) {
    cases += fmt::format("    '{}') words='{}'; options='{}' ;;\n", n.path, joined(n.words),
                         joined(n.options));
  }
  return R"sh(# bash completion for medley:  source <(medley completion bash)
_medley() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} path='' words='' options='' i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${COMP_WORDS[i]} in
      -*) break ;;
      run|check|list|show|explain|completion) path=${COMP_WORDS[i]}; break ;;
      trace) path=trace ;;
      generate|convert) path="trace ${COMP_WORDS[i]}"; break ;;
    esac
    if [[ $path == trace && ${COMP_WORDS[i+1]} == show ]] && ((i + 1 < COMP_CWORD)); then
      path='trace show'; break
    fi
  done
  case $prev in
    --format) COMPREPLY=($(compgen -W 'table json csv' -- "$cur")); return ;;
    --requests) COMPREPLY=($(compgen -W 'all none sample:' -- "$cur")); return ;;
    --out|--catalog|--zoo) COMPREPLY=($(compgen -d -- "$cur")); return ;;
    device|link|node|backend|model)
      if [[ $path == show ]]; then
        local IFS=$'\n'
        local names=($(compgen -W "$("${COMP_WORDS[0]}" list "${prev}s" --format csv 2>/dev/null |
          tail -n +2 | cut -d, -f1)" -- "$cur"))
        COMPREPLY=("${names[@]// /\\ }")
        return
      fi ;
  ;
  esac
  case $path in
)sh" + cases +
         R"sh(  esac
  if [[ $cur == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$cur"))
  elif [[ -n $words && $prev == "${path##* }" || -z $path ]]; then
    COMPREPLY=($(compgen -W "$words $options" -- "$cur"))
  else
    COMPREPLY=($(compgen -f -- "$cur"))
  fi
}
complete -o filenames -F _medley medley
)sh";
}

std::string shell_quoted(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return "'" + out + "'";
}

std::string zsh_script(const std::vector<Node>& nodes) {
  std::string cases;
  for (const Node& n : nodes) {
    std::string options;
    for (std::size_t i = 0; i < n.options.size(); ++i) {
      std::string text = n.options[i] + "[" + n.descriptions[i] + "]";
      for (std::size_t at = 0; (at = text.find(':', at)) != std::string::npos; at += 2) {
        text.insert(at, "\\");
      }
      options += " " + shell_quoted(text);
    }
    cases += fmt::format("    {}) words=({}); options=({} ) ;;\n", shell_quoted(n.path),
                         joined(n.words), options);
  }
  return R"sh(#compdef medley
# zsh completion for medley:  medley completion zsh > "${fpath[1]}/_medley"
_medley() {
  local key="" w
  local -a options words
  for w in "${(@)words[2,CURRENT-1]}"; do :; done
  local -a typed=("${(@)words[2,CURRENT-1]}")
  if [[ ${typed[1]} == trace && -n ${typed[2]} && ${typed[2]} != -* ]]; then
    key="trace ${typed[2]}"
  elif [[ -n ${typed[1]} && ${typed[1]} != -* ]]; then
    key=${typed[1]}
  fi
  local depth=$(( ${#${(z)key}} + 1 ))
  local first=$(( CURRENT - 1 == depth ))
  case $key in
)sh" + cases +
         R"sh(  esac
  if (( first )) && (( ${#words} )); then
    compadd -a words
  else
    _arguments -s $options '*:file:_files'
  fi
}
compdef _medley medley
)sh";
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
