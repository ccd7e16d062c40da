#include "common/tensor/activation.h"

#include "common/tensor/scalar_math.h"

namespace tandem {
namespace {

// alpha and scale of Klambauer et al., "Self-normalizing neural networks", 2017.
constexpr float kSeluScale = 1.05070098f;
constexpr float kSeluScaleAlpha = 1.75809934f;
constexpr float kLeakySlope = 0.2f;
constexpr float kInverseSqrt2Pi = 0.39894228f;

// Each function is a pair: F(x), and D(x, y), its derivative. Comparisons are such that a NaN stays
// one.
struct Relu {
  static float F(float x) { return AtLeast(x, 0.0f); }
  static float D(float, float y) { return y > 0 ? 1.0f : 0.0f; }
};
struct Sigmoid {
  static float F(float x) { return SigmoidOf(x); }
  static float D(float, float y) { return y * (1.0f - y); }
};
struct HyperbolicTangent {
  static float F(float x) { return TanhOf(x); }
  static float D(float, float y) { return __builtin_fmaf(-y, y, 1.0f); }
};
struct Elu {
  static float F(float x) { return x < 0 ? Expm1OfNegative(x) : x; }
  static float D(float, float y) { return y < 0 ? y + 1.0f : 1.0f; }
};
struct Selu {
  static float F(float x) { return x < 0 ? kSeluScaleAlpha * Expm1OfNegative(x) : kSeluScale * x; }
  static float D(float, float y) { return y < 0 ? y + kSeluScaleAlpha : kSeluScale; }
};
struct Softplus {
  static float F(float x) { return SoftplusOf(x); }
  static float D(float x, float) { return SigmoidOf(x); }
};
struct Softsign {
  static float F(float x) { return x / (1.0f + Abs(x)); }
  static float D(float x, float) {
    const float inverse = 1.0f / (1.0f + Abs(x));
    return inverse * inverse;
  }
};
struct Silu {
  static float F(float x) { return x * SigmoidOf(x); }
  static float D(float x, float) { return SigmoidOf(x) * __builtin_fmaf(x, SigmoidOf(-x), 1.0f); }
};
// Exact, not the tanh approximation: x times the normal distribution function.
struct Gelu {
  static float F(float x) { return x * NormalCdfOf(x); }
  static float D(float x, float) {
    return __builtin_fmaf(x * kInverseSqrt2Pi, GaussianOf(x), NormalCdfOf(x));
  }
};
struct LeakyRelu {
  static float F(float x) { return x < 0 ? kLeakySlope * x : x; }
  static float D(float, float y) { return y > 0 ? 1.0f : kLeakySlope; }
};
struct Exponential {
  static float F(float x) { return ExpOf(x); }
  static float D(float, float y) { return y; }
};
struct HardSigmoid {
  static float F(float x) { return AtMost(AtLeast(x + 3.0f, 0.0f), 6.0f) / 6.0f; }
  static float D(float, float y) { return (y > 0 && y < 1.0f) ? 1.0f / 6.0f : 0.0f; }
};
struct Relu6 {
  static float F(float x) { return AtMost(AtLeast(x, 0.0f), 6.0f); }
  static float D(float, float y) { return (y > 0 && y < 6.0f) ? 1.0f : 0.0f; }
};
struct Linear {
  static float F(float x) { return x; }
  static float D(float, float) { return 1.0f; }
};

template <typename Function>
void Map(size_t n, const float* x, float* y) {
  TANDEM_INDEPENDENT
  for (size_t i = 0; i < n; ++i) y[i] = Function::F(x[i]);
}

template <typename Function>
void MapBackward(size_t n, const float* x, const float* y, const float* dy, float* dx) {
  TANDEM_INDEPENDENT
  for (size_t i = 0; i < n; ++i) dx[i] = Function::D(x[i], y[i]) * dy[i];
}

struct Kernels {
  Activation activation;
  bool needs_input;
  void (*forward)(size_t, const float*, float*);
  void (*backward)(size_t, const float*, const float*, const float*, float*);
};

template <typename Function>
constexpr Kernels Entry(Activation activation, bool needs_input) {
  return {activation, needs_input, Map<Function>, MapBackward<Function>};
}

// In the order of the enumeration. kSoftmax is elsewhere.
constexpr Kernels kKernels[] = {
    Entry<Linear>(Activation::kLinear, false),
    Entry<Relu>(Activation::kRelu, false),
    Entry<Sigmoid>(Activation::kSigmoid, false),
    Entry<HyperbolicTangent>(Activation::kTanh, false),
    {Activation::kSoftmax, false, nullptr, nullptr},
    Entry<Elu>(Activation::kElu, false),
    Entry<Selu>(Activation::kSelu, false),
    Entry<Softplus>(Activation::kSoftplus, true),
    Entry<Softsign>(Activation::kSoftsign, true),
    Entry<Silu>(Activation::kSilu, true),
    Entry<Gelu>(Activation::kGelu, true),
    Entry<LeakyRelu>(Activation::kLeakyRelu, false),
    Entry<Exponential>(Activation::kExponential, false),
    Entry<HardSigmoid>(Activation::kHardSigmoid, false),
    Entry<Relu6>(Activation::kRelu6, false),
};

constexpr bool InOrder() {
  int i = 0;
  for (const Kernels& kernels : kKernels) {
    if (static_cast<int>(kernels.activation) != i++) return false;
  }
  return true;
}
static_assert(InOrder());

const Kernels& KernelsOf(Activation activation) { return kKernels[static_cast<int>(activation)]; }

}  // namespace

bool DerivativeNeedsInput(Activation activation) { return KernelsOf(activation).needs_input; }

void Activate(Activation activation, size_t n, const float* x, float* y) {
  KernelsOf(activation).forward(n, x, y);
}

void ActivateBackward(Activation activation, size_t n, const float* x, const float* y,
                      const float* dy, float* dx) {
  const Kernels& kernels = KernelsOf(activation);
  // Where only y counts, x may be gone; y stands in for it so that nothing invalid is read.
  kernels.backward(n, kernels.needs_input ? x : y, y, dy, dx);
}

}  // namespace tandem
