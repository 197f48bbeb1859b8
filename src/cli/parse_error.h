// Command line errors as one line that names the valid choices.
#pragma once

#include <CLI/CLI.hpp>

#include <string>

namespace cudabk::cli {

// What was wrong with the command line, on one line, without "error: ".
std::string describe_parse_error(const CLI::App& app, const CLI::ParseError& error);

}  // namespace cudabk::cli
