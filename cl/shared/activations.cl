//# The functions of `shaders/shared/functions.wgsl` that epilogues call.
//% if "is_nan" in calls
inline int4 is_nan(float4 x) {
    return isnan(x);
}

//% endif
//% if "gelu" in calls
inline float4 gelu(float4 x) {
    const float4 z = fabs(x) * 0.70710678f;
    const float4 t = 1.0f / (1.0f + 0.3275911f * z);
    const float4 high = (1.061405429f * t - 1.453152027f) * t + 1.421413741f;
    const float4 above = ((high * t - 0.284496736f) * t + 0.254829592f) * t * exp(-z * z);
    return 0.5f * x * select(above, 2.0f - above, x > 0.0f);
}

//% endif
//% if "gelu_tanh" in calls
inline float4 gelu_tanh(float4 x) {
    const float4 z = 0.7978845608f * (x + 0.044715f * x * x * x);
    return 0.5f * x * (1.0f + select(tanh(clamp(z, -10.0f, 10.0f)), sign(z), fabs(z) > 10.0f));
}

//% endif
