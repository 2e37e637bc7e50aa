//# What becomes of `result`, the normalised pixel `at` of `slice`, the slice of number `image` of all images.
//% if SCALED == 1
result = result * ${load4("weights", "slice")};
//% elif SCALED == 2
result = result * ${load4("arg0", "image")};
//% endif
//% if MOVED == 1
result = result + ${load4("bias", "slice")};
//% elif MOVED == 2
result = result + ${load4("arg1", "image")};
//% endif
//% for line in epilogue("result", "slice", "at")
${line}
//% endfor
${store4("dst", "at", "result")}
