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
    for (o, row) in data.chunks(inputs.max(1)).enumerate() {
        for (k, &weight) in row.iter().enumerate() {
            out[4 * (o / 4 * inputs + k) + o % 4] = weight;
        }
    }
    out
}

/// Why so many words, and a vec4 for each invocation of a work-group of `size`, are too much local memory, if they are.
pub(super) fn local_obstacle(size: u32, words: usize, most: u32) -> Option<String> {
    let bytes = 16 * size as usize + 4 * words + 16;
    (bytes > most as usize).then(|| format!("{bytes} bytes of local memory, the device has {most}"))
}
