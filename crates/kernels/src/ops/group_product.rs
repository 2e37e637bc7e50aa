//! Products of a row that lies in local memory with constant weights, whose sums the invocations of a work-group share:
//! what the texts with `shared/row_sums` name.

/// Weights of a sum that an invocation loads before it adds the first of them, at most.
const MOST_UNROLLED: usize = 4;

/// The invocations of a work-group of `size` that share each of `count` sums of at most `terms`.
pub(super) fn shares(size: u32, count: usize, terms: usize) -> usize {
    let size = size as usize;
    let fair = size / count.next_power_of_two().clamp(1, size);
    fair.min(terms.next_power_of_two())
}

/// Terms that an invocation loads at a time where `shares` of them have a sum of `terms`.
pub(super) fn unrolled(terms: usize, shares: usize) -> usize {
    (terms / shares.max(1)).next_power_of_two().clamp(1, MOST_UNROLLED)
}

/// Weights `oc 1 1 c` as `[output slice][input][4]`, zeros beyond the outputs.
pub(super) fn pack(data: &[f32], inputs: usize, slices: usize) -> Vec<f32> {
    let mut out = vec![0.0; 4 * inputs * slices];
    let lines = (4 * inputs).max(1);
    for (out, rows) in out.chunks_exact_mut(lines).zip(data.chunks(lines)) {
        let out = out.as_chunks_mut::<4>().0;
        let mut rows = rows.chunks(inputs);
        let four = [(); 4].map(|()| rows.next());
        // All at once, so that what is written is written in order.
        if let [Some(a), Some(b), Some(c), Some(d)] = four {
            let each = a.iter().zip(b).zip(c).zip(d);
            out.iter_mut().zip(each).for_each(|(out, (((&a, &b), &c), &d))| *out = [a, b, c, d]);
            continue;
        }
        for (lane, row) in four.into_iter().flatten().enumerate() {
            out.iter_mut().zip(row).for_each(|(out, &weight)| out[lane] = weight);
        }
    }
    out
}

/// Why so many words, and a vec4 for each invocation of a work-group of `size`, are too much local memory, if they are.
pub(super) fn local_obstacle(size: u32, words: usize, most: u32) -> Option<String> {
    let bytes = 16 * size as usize + 4 * words + 16;
    (bytes > most as usize).then(|| format!("{bytes} bytes of local memory, the device has {most}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_lie_input_by_input_in_slices_of_four_outputs() {
        let (outputs, inputs) = (6, 3);
        let data: Vec<f32> = (1..=outputs * inputs).map(|weight| weight as f32).collect();
        let packed = pack(&data, inputs, 2);
        let mut wanted = vec![0.0; 24];
        for (at, weight) in data.iter().enumerate() {
            let (o, k) = (at / inputs, at % inputs);
            wanted[4 * (o / 4 * inputs + k) + o % 4] = *weight;
        }
        assert_eq!(packed, wanted);
        assert!(pack(&[], 0, 2).is_empty());
    }
}
