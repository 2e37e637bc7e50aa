//! Which token comes next.

/// Chooses tokens by their scores.
#[derive(Debug)]
pub struct Chooser {
    temperature: f32,
    most: usize,
    state: u64,
}

impl Chooser {
    /// `temperature` 0 takes the likeliest token; else one of the `most` likeliest ones is drawn, from `seed` on.
    pub fn new(temperature: f32, most: usize, seed: u64) -> Self {
        Chooser { temperature, most: most.max(1), state: seed }
    }

    /// The index of a token.
    pub fn choose(&mut self, scores: &[f32]) -> usize {
        let mut order: Vec<usize> = (0..scores.len()).collect();
        order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
        let best = order[0];
        if self.temperature <= 0.0 {
            return best;
        }
        order.truncate(self.most);
        let weight = |&token: &usize| f64::from((scores[token] - scores[best]) / self.temperature).exp();
        let weights: Vec<f64> = order.iter().map(weight).collect();
        let mut rest = self.uniform() * weights.iter().sum::<f64>();
        for (token, weight) in order.into_iter().zip(weights) {
            rest -= weight;
            if rest <= 0.0 {
                return token;
            }
        }
        best
    }

    /// A number of [0, 1): SplitMix64 (Steele, Lea, Flood 2014).
    fn uniform(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}
