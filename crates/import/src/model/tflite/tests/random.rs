//! Operators that draw.

use super::super::options;
use super::operators::fields;
use super::writer::{Field, FileSpec, OptionsSpec, code};
use crate::dtype::DType;
use crate::error::Error;
use crate::host::HostTensor;
use crate::model::tflite::names::element;
use diptych::Session;
use diptych::{LoadOptions, Model};

fn seeds(seed: i64, other: i64) -> OptionsSpec {
    fields(options::RandomOptions::TAG, &[(0, Field::Long(seed)), (1, Field::Long(other))])
}

/// Normal and uniform numbers of the same and of other seeds, and places drawn by the logarithms `x`.
fn file() -> FileSpec {
    let mut file = FileSpec::with_input("x", &[2, 3]);
    let shape = file.integers("shape", &[2], &[30, 50]);
    let count = file.integers("count", &[], &[2000]);
    let mut outputs = Vec::new();
    for (name, inputs, kind, options) in [
        ("RANDOM_UNIFORM", vec![shape], element::FLOAT32, seeds(0, 0)),
        ("RANDOM_STANDARD_NORMAL", vec![shape], element::FLOAT32, seeds(1, 2)),
        ("RANDOM_STANDARD_NORMAL", vec![shape], element::FLOAT32, seeds(1, 2)),
        ("MULTINOMIAL", vec![0, count], element::INT32, seeds(3, 4)),
        ("MULTINOMIAL", vec![0, count], element::INT64, seeds(-3, 4)),
    ] {
        let output = file.map(&format!("y{}", outputs.len()), &[]);
        file.tensors[output as usize].element_type = kind;
        file.op(code(name), &inputs, &[output], options);
        outputs.push(output);
    }
    file.outputs = outputs;
    file
}

fn model(file: &FileSpec) -> Result<Model, Error> {
    Model::from_bytes(&file.bytes(), &LoadOptions::default())
}

#[test]
fn operators_draw_what_they_say() {
    let session = Session::on_cpu(&model(&file()).expect("a valid file").graph).expect("a session");
    let weights = [1.0f32, 4.0, 5.0, 7.0, 2.0, 1.0];
    let logs =
        HostTensor::new(crate::dims::Dims::new(&[2, 3]).expect("small"), weights.map(f32::ln).to_vec());
    let logs = logs.expect("as many");
    let [first, second] = [(); 2].map(|()| session.compute(&[("x", &logs)]).expect("a run"));
    let types = [DType::F32, DType::F32, DType::F32, DType::I32, DType::I64];
    assert_eq!(first.iter().map(HostTensor::dtype).collect::<Vec<_>>(), types);
    for (index, (one, other)) in first.iter().zip(&second).enumerate() {
        assert_eq!(one.dims().extents(), if index < 3 { [30, 50] } else { [2, 2000] });
        assert_ne!(one, other, "output {index} is the same in both runs");
        assert!(first[..index].iter().all(|earlier| earlier != one), "output {index} is another one's");
    }
    let mean = |tensor: &HostTensor| tensor.to_f32().iter().sum::<f32>() / 1500.0;
    // Four deviations of a mean of 1500 numbers.
    assert!((mean(&first[0]) - 0.5).abs() < 4.0 * 0.2887 / 38.7, "{}", mean(&first[0]));
    assert!(mean(&first[1]).abs() < 4.0 / 38.7, "{}", mean(&first[1]));
    for places in &first[3..] {
        let places = places.to_i64().expect("integers").into_owned();
        for (place, weight) in weights.iter().enumerate() {
            let row = &places[place / 3 * 2000..][..2000];
            let found = row.iter().filter(|&&it| it == (place % 3) as i64).count() as f32;
            let share = weight / 10.0;
            let allowed = 4.0 * (2000.0 * share * (1.0 - share)).sqrt();
            assert!((found - 2000.0 * share).abs() < allowed, "place {place}: {found} of 2000");
        }
    }
}

#[test]
fn what_cannot_be_drawn_is_refused() {
    let refused = |change: fn(&mut FileSpec)| {
        let mut file = file();
        change(&mut file);
        model(&file).expect_err("refused").to_string()
    };
    let without = refused(|file| file.ops[0].options = OptionsSpec::None);
    assert!(without.contains("RANDOM_UNIFORM") && without.contains("wanted RandomOptions"), "{without}");
    let of_integers = refused(|file| file.tensors[3].element_type = element::INT32);
    assert!(of_integers.contains("I32, wanted floats"), "{of_integers}");
    let computed = refused(|file| file.ops[0].inputs[0] = 0);
    assert!(computed.contains("wanted a constant"), "{computed}");
    let of_floats = refused(|file| file.tensors[6].element_type = element::FLOAT32);
    assert!(of_floats.contains("places of F32, wanted I32 or I64"), "{of_floats}");
    let custom = refused(|file| {
        file.ops[0].code = code("CUSTOM");
        file.ops[0].custom = Some("FlexRandomUniform".to_owned());
    });
    assert!(custom.contains("not supported: CUSTOM \"FlexRandomUniform\" (1, op 0)"), "{custom}");
}
