#![no_main]

diptych_fuzz::files!(diptych_fuzz::flatbuffer::FORMAT, diptych_fuzz::checks::tflite);
