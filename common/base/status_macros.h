// Early return on errors: TANDEM_RETURN_IF_ERROR(expr) and TANDEM_ASSIGN_OR_RETURN(lhs, expr).
#ifndef TANDEM_COMMON_BASE_STATUS_MACROS_H_
#define TANDEM_COMMON_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define TANDEM_RETURN_IF_ERROR(expr)                                                       \
  do {                                                                                     \
    if (absl::Status tandem_status_ = (expr); !tandem_status_.ok()) return tandem_status_; \
  } while (false)

#define TANDEM_CONCAT_INNER_(a, b) a##b
#define TANDEM_CONCAT_(a, b) TANDEM_CONCAT_INNER_(a, b)

#define TANDEM_ASSIGN_OR_RETURN(lhs, expr) \
  TANDEM_ASSIGN_OR_RETURN_(TANDEM_CONCAT_(tandem_or_, __LINE__), lhs, expr)
#define TANDEM_ASSIGN_OR_RETURN_(var, lhs, expr) \
  auto var = (expr);                             \
  if (!var.ok()) return std::move(var).status(); \
  lhs = *std::move(var)

#endif  // TANDEM_COMMON_BASE_STATUS_MACROS_H_
