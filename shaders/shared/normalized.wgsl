//# What becomes of `result`, the normalised pixel `at` of `slice`, with what `scaled` loads.
//% if SCALED > 0
result = result * scale;
//% endif
//% if MOVED > 0
result = result + shift;
//% endif
//% for line in epilogue("result", "slice", "at")
${line}
//% endfor
${store4("dst", "at", "result")}
