// Error values. Nothing in this project throws across a module boundary or aborts: a function that can
// fail returns Result<T> (or Status) and says in the message what was expected and what came.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace cudabk {

// What a caller can do about an error; src/cli maps each kind to its exit status (README.md).
enum class ErrorKind {
  kInvalid,       // bad command line, unusable file, illegal shape           -> exit 2
  kUnsupported,   // legal, but this op/type/device combination is not done   -> exit 2
  kInconclusive,  // too few or too noisy samples                             -> exit 3
  kNothing,       // empty selection, nothing to compare                      -> exit 4
  kWrongOutput,   // a result differs from the reference                      -> exit 5
  kUnfit,         // no such device, out of device memory, no toolkit         -> exit 6
  kInternal,      // a bug or a failed driver call                            -> exit 70
  kInterrupted,   // Ctrl-C; partial results are kept                         -> exit 130
};

struct Error {
  ErrorKind kind = ErrorKind::kInternal;
  std::string message;

  // Puts the surrounding operation in front: "rms_norm: gain has 512 elements, x has 4096 columns".
  Error with_context(std::string_view what) && {
    message.insert(0, std::string(what) + ": ");
    return std::move(*this);
  }
};

inline Error invalid(std::string m) { return {ErrorKind::kInvalid, std::move(m)}; }
inline Error unsupported(std::string m) { return {ErrorKind::kUnsupported, std::move(m)}; }
inline Error unfit(std::string m) { return {ErrorKind::kUnfit, std::move(m)}; }
inline Error internal_error(std::string m) { return {ErrorKind::kInternal, std::move(m)}; }

// A value or an Error. [[nodiscard]] so that no failure is dropped silently.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit on purpose
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit on purpose

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() { return value(); }
  const T& operator*() const { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)), ok_(false) {}  // NOLINT: implicit on purpose

  bool ok() const { return ok_; }
  explicit operator bool() const { return ok_; }
  const Error& error() const& { return error_; }
  Error&& error() && { return std::move(error_); }

 private:
  Error error_;
  bool ok_ = true;
};

using Status = Result<void>;
inline Status success() { return {}; }

}  // namespace cudabk

#define CUDABK_CONCAT_(a, b) a##b
#define CUDABK_CONCAT(a, b) CUDABK_CONCAT_(a, b)

// Returns from the enclosing function when `expr` (a Status or Result) failed.
#define CUDABK_TRY(expr)                        \
  do {                                          \
    auto cudabk_status_ = (expr);               \
    if (!cudabk_status_.ok()) {                 \
      return std::move(cudabk_status_).error(); \
    }                                           \
  } while (false)

// CUDABK_ASSIGN(auto x, make_x()): declares x from a Result, or returns its error.
#define CUDABK_ASSIGN(lhs, expr) CUDABK_ASSIGN_(CUDABK_CONCAT(cudabk_result_, __LINE__), lhs, expr)
#define CUDABK_ASSIGN_(tmp, lhs, expr) \
  auto tmp = (expr);                   \
  if (!tmp.ok()) {                     \
    return std::move(tmp).error();     \
  }                                    \
  lhs = std::move(tmp).value()
