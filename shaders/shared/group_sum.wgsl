//# Adds up `part` over the SIZE invocations of a work-group, for each of them: a few add up a column each, and all
//# add up the columns. Two barriers; before `partial` is written again there must be another one.
    //% set columns = SIZE if SIZE < 16 else (8 if SIZE < 256 else (16 if SIZE < 1024 else 32))
    partial[lid.x] = part;
    ${barrier};
    if (lid.x < ${columns}u) {
        //% for row in range(1, SIZE // columns)
        part = part + partial[lid.x + ${row * columns}u];
        //% endfor
        partial[lid.x] = part;
    }
    ${barrier};
    part = partial[0];
    //% for column in range(1, columns)
    part = part + partial[${column}u];
    //% endfor
