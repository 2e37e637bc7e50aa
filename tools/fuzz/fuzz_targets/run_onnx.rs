#![no_main]

diptych_fuzz::files!(diptych_fuzz::protobuf::FORMAT, diptych_fuzz::checks::run_onnx);
