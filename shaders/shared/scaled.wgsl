//# What every normalised pixel of `slice` is scaled by, and what is added to it; `image` is the slice's number among all
//# images'.
//% if SCALED == 1
let scale: ${acc4} = ${load4("weights", "slice")};
//% elif SCALED == 2
let scale: ${acc4} = ${load4("arg0", "image")};
//% endif
//% if MOVED == 1
let shift: ${acc4} = ${load4("bias", "slice")};
//% elif MOVED == 2
let shift: ${acc4} = ${load4("arg1", "image")};
//% endif
