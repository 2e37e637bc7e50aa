//! Convolutions of volumes, against the sums of their taps.

use super::*;
use crate::dims::Dims;
use crate::graph::Value;
use crate::host::HostTensor;
use crate::model::budget::Budget;
use crate::model::constant::{Constant, dims_of, indices, position};
use crate::model::reason::Reason;
use crate::ops::elementwise::Function;
use diptych::Session;

/// A convolution of volumes.
#[derive(Debug, Clone, Copy)]
struct Case {
    input: [usize; 3],
    /// The channels of the input and of the output.
    channels: [usize; 2],
    groups: usize,
    kernel: [usize; 3],
    stride: [usize; 3],
    dilation: [usize; 3],
    pads: [(i64, i64); 3],
    transposed: bool,
}

impl Case {
    fn of(input: [usize; 3]) -> Self {
        let (ones, pads) = ([1; 3], [(0, 0); 3]);
        let (channels, groups, transposed) = ([1, 1], 1, false);
        Case { input, channels, groups, kernel: ones, stride: ones, dilation: ones, pads, transposed }
    }

    fn output(&self, axis: usize) -> usize {
        let (span, pads) = ((self.kernel[axis] - 1) * self.dilation[axis] + 1, self.pads[axis]);
        let (extent, stride, pads) = (self.input[axis], self.stride[axis], (pads.0 + pads.1) as usize);
        match self.transposed {
            true => (extent - 1) * stride + span - pads,
            false => (extent + pads - span) / stride + 1,
        }
    }
}

/// Numbers from -1 to 1.
fn drawn(extents: &[usize], seed: u32) -> HostTensor {
    let dims = Dims::new(extents).expect("extents");
    let mut state = seed;
    let values = (0..dims.elements()).map(|_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) as f32 / 32_768.0 - 1.0
    });
    HostTensor::new(dims, values.collect::<Vec<f32>>()).expect("a tensor")
}

/// The sums of each tap, one by one: `x` is `n c d h w`, the weights are `outputs inputs d h w`.
fn summed(case: &Case, x: &HostTensor, weights: &HostTensor, bias: &[f32], out: &[usize]) -> Vec<f64> {
    let (x_extents, w_extents) = (x.dims(), weights.dims());
    let (x, weights) = (x.to_nhwc(), weights.to_nhwc());
    let mut sums: Vec<f64> = indices(out).map(|at| f64::from(bias[at[1]])).collect();
    let [inputs, outputs] = case.channels.map(|channels| channels / case.groups);
    let spatial = [&[out[0]], &case.input[..]].concat();
    for (at, tap) in indices(&spatial).flat_map(|at| indices(&case.kernel).map(move |tap| (at.clone(), tap)))
    {
        for (group, o, i) in indices(&[case.groups, outputs, inputs]).map(|at| (at[0], at[1], at[2])) {
            let place: Option<Vec<usize>> = (0..3)
                .map(|axis| {
                    let (own, moved) =
                        (at[1 + axis], (tap[axis] * case.dilation[axis]) as i64 - case.pads[axis].0);
                    let place = match case.transposed {
                        true => (own * case.stride[axis]) as i64 + moved,
                        // The window that has this element at the tap.
                        false => match own as i64 - moved {
                            first if first % case.stride[axis] as i64 != 0 => return None,
                            first => first / case.stride[axis] as i64,
                        },
                    };
                    usize::try_from(place).ok().filter(|&place| place < out[2 + axis])
                })
                .collect();
            let Some(place) = place else { continue };
            let (input, output) = (group * inputs + i, group * outputs + o);
            let channels = if case.transposed { [o, input] } else { [output, i] };
            let weight = weights[position(w_extents.extents(), &[&channels[..], &tap].concat())];
            let element = x[position(x_extents.extents(), &[&[at[0], input], &at[1..]].concat())];
            sums[position(out, &[&[at[0], output], &place[..]].concat())] +=
                f64::from(weight) * f64::from(element);
        }
    }
    sums
}

fn built(case: &Case) -> Result<(), String> {
    let Case { channels: [inputs, outputs], groups, .. } = *case;
    let x = drawn(&[&[2, inputs], &case.input[..]].concat(), 1);
    let of = if case.transposed { [outputs / groups, inputs] } else { [outputs, inputs / groups] };
    let weights = drawn(&[&of[..], &case.kernel].concat(), 2);
    let bias: Vec<f32> = (0..outputs).map(|channel| channel as f32 * 0.5).collect();
    let out: Vec<usize> = [2, outputs].into_iter().chain((0..3).map(|axis| case.output(axis))).collect();
    let b = &mut Builder::new(Budget::new(1 << 20), 0, crate::model::prepared);
    let own = b.graph.input("x", x.dims()).map_err(|error| error.to_string())?;
    let make = |b: &mut Builder| -> Result<Value, Reason> {
        let own = Operand::Value(Mapped::plain(own, 5, Kind::F32));
        let known = |tensor: HostTensor| Operand::Constant(Constant::Floats(tensor), Kind::F32);
        let bias = known(HostTensor::vector(bias.clone())?);
        let groups = Groups { count: groups, transposed: case.transposed };
        let own_weights = Weights::new(b, known(weights.clone()), Some(bias), &[0, 1, 2, 3, 4], groups)?;
        let windows = Windows {
            stride: case.stride.to_vec(),
            dilation: case.dilation.to_vec(),
            pads: case.pads.to_vec(),
            ..Windows::new(&case.kernel)
        };
        let after = Some(Function::Relu);
        let y = match case.transposed {
            true => transposed_convolution(b, own, own_weights, windows, &out[2..], after)?,
            false => convolution(b, own, own_weights, windows, after)?,
        };
        let y = b.with_extents("result", y, &[2 * outputs, out[2..].iter().product()])?;
        Ok(b.mapped(y)?.value)
    };
    let y = make(b).map_err(String::from)?;
    b.graph.output(y).map_err(|error| error.to_string())?;
    let session = Session::on_cpu(&b.graph).map_err(|error| error.to_string())?;
    let found = session.compute(&[("x", &x)]).map_err(|error| error.to_string())?;
    let wanted = summed(case, &x, &weights, &bias, &out);
    assert!(dims_of(&out).is_ok_and(|dims| dims.elements() == wanted.len()));
    let terms = (inputs * case.kernel.iter().product::<usize>()) as f64;
    for (at, (found, wanted)) in found[0].to_f32().iter().zip(&wanted).enumerate() {
        let wanted = wanted.max(0.0);
        if (f64::from(*found) - wanted).abs() > terms * f64::from(f32::EPSILON) * terms.max(8.0) {
            return Err(format!("element {at}: found {found}, wanted {wanted}"));
        }
    }
    Ok(())
}

/// Each case with the sums of its taps.
fn compare(cases: &[Case]) {
    let failures: Vec<String> =
        cases.iter().filter_map(|case| built(case).err().map(|error| format!("{case:?}: {error}"))).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn convolutions_of_volumes_are_the_sums_of_their_taps() {
    compare(&[
        Case { channels: [3, 4], kernel: [3, 2, 3], pads: [(1, 1), (0, 1), (1, 1)], ..Case::of([4, 5, 4]) },
        Case {
            channels: [2, 3],
            kernel: [2, 3, 3],
            stride: [2, 1, 2],
            dilation: [2, 1, 1],
            ..Case::of([6, 4, 5])
        },
        // In groups of several channels, in groups of one, and of one with several outputs.
        Case { channels: [4, 6], groups: 2, kernel: [3, 2, 2], ..Case::of([4, 3, 4]) },
        Case { channels: [3, 3], groups: 3, kernel: [3, 3, 3], pads: [(1, 1); 3], ..Case::of([3, 4, 4]) },
        Case { channels: [2, 4], groups: 2, kernel: [2, 2, 1], stride: [1, 2, 1], ..Case::of([3, 4, 3]) },
        // Along the depth alone, and in maps alone.
        Case {
            channels: [3, 4],
            kernel: [3, 1, 1],
            stride: [2, 1, 1],
            pads: [(1, 1), (0, 0), (0, 0)],
            ..Case::of([5, 3, 4])
        },
        Case { channels: [4, 4], groups: 4, kernel: [3, 1, 1], dilation: [2, 1, 1], ..Case::of([6, 2, 3]) },
        Case { channels: [3, 4], kernel: [1, 3, 3], stride: [2, 1, 1], ..Case::of([5, 4, 4]) },
        Case { channels: [3, 4], stride: [2, 2, 1], ..Case::of([5, 4, 4]) },
        // Pads that cut.
        Case { channels: [2, 3], kernel: [2, 2, 2], pads: [(0, 0), (0, 0), (1, 0)], ..Case::of([3, 3, 3]) },
    ]);
}

#[test]
fn transposed_convolutions_of_volumes_are_those_of_their_taps() {
    compare(
        &[
            // Channels, groups; kernel, stride, dilation; pads; more of the output.
            Case { channels: [3, 4], groups: 1, kernel: [3, 2, 3], stride: [2, 1, 2], ..Case::of([3, 4, 2]) },
            Case { channels: [4, 6], groups: 2, kernel: [2, 3, 1], stride: [3, 2, 1], ..Case::of([2, 3, 4]) },
            Case {
                channels: [3, 3],
                groups: 3,
                kernel: [2, 2, 2],
                dilation: [2, 1, 2],
                ..Case::of([4, 3, 5])
            },
            Case {
                channels: [2, 3],
                kernel: [3, 3, 3],
                stride: [2, 2, 2],
                pads: [(1, 0), (0, 1), (1, 1)],
                ..Case::of([3, 3, 3])
            },
            Case { channels: [2, 2], kernel: [1, 1, 1], stride: [3, 1, 2], ..Case::of([2, 2, 2]) },
        ]
        .map(|case| Case { transposed: true, ..case }),
    );
}
