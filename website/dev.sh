# shellcheck shell=bash
# The documentation as a site. Read by ./dev; its functions are those of ./dev, and it starts in the root of the tree.
#: ./dev docs [serve]
#: the documentation as a site, in build/website; serve: at http://127.0.0.1:8000, and anew after each change
#: ./dev test docs
#: the site without a broken link, its notebook, and the README's demo: a part of every ./dev test

docs_packages=(mkdocs-material "mkdocstrings[python]" mkdocs-jupyter grpcio-tools protobuf numpy pytest)

docs() {
  make_venv build/docs-venv "${docs_packages[@]}"
  case ${1-} in
    serve) build/docs-venv/bin/mkdocs serve --config-file website/mkdocs.yml ;;
    '')
      say "building the site"
      NO_MKDOCS_2_WARNING=1 build/docs-venv/bin/mkdocs build --config-file website/mkdocs.yml
      echo "$root/build/website/index.html"
      ;;
    *) die "./dev docs takes nothing, or serve" ;;
  esac
}

test_docs() {
  step "build" build release || return 0
  step "the site" docs && run_pytest_of build/docs-venv/bin/python tests/website
  if step "./dev demo, as the README has it" ./dev demo; then passed=$((passed + 1)); fi
}
