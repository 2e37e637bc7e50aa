use super::super::row::tests::row;
use super::*;

/// Noise of normal kind, by the sum of twelve uniform numbers.
struct Noise(u64);

impl Noise {
    fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }

    /// Times of about `centre`, `spread` apart, each like its predecessor by `likeness`, and one of
    /// twenty half as long again.
    fn times(&mut self, count: usize, centre: f64, spread: f64, likeness: f64) -> Vec<f64> {
        let mut state = self.normal();
        (0..count)
            .map(|_| {
                state = likeness * state + (1.0 - likeness * likeness).sqrt() * self.normal();
                let slow = if self.uniform() < 0.05 { 1.5 } else { 1.0 };
                centre * (1.0 + spread * state) * slow
            })
            .collect()
    }
}

#[test]
fn a_planted_change_of_three_percent_is_found_among_a_hundred_rows() {
    let mut wrong = 0;
    for seed in 1..=20 {
        let mut noise = Noise(seed * 7919);
        let mut rows = |planted: f64| -> Vec<Row> {
            (0..100)
                .map(|case| {
                    let factor = match case {
                        17 => planted,
                        42 => 1.0 / planted,
                        _ => 1.0,
                    };
                    row(&case.to_string(), &noise.times(30, 100.0 * factor, 0.01, 0.0))
                })
                .collect()
        };
        let (before, after) = (rows(1.0), rows(1.03));
        let comparison = compare(&before, &after, 0.01);
        for (index, wanted) in [(17, Verdict::Slower), (42, Verdict::Faster)] {
            let change = &comparison.changes[index];
            assert_eq!(change.verdict, wanted, "seed {seed}, row {index}: {:?}", change.interval);
        }
        wrong += usize::from(comparison.count(Verdict::Slower) + comparison.count(Verdict::Faster) > 2);
    }
    // One of 20 is expected at most; four or more at 5 % have a probability of 2 %.
    assert!(wrong <= 3, "{wrong} of 20 comparisons found a change that was not planted");
}

#[test]
fn noise_is_not_called_real_even_if_samples_are_alike() {
    for likeness in [0.0, 0.5] {
        let mut wrong = 0;
        for seed in 1..=100 {
            let mut noise = Noise(seed * 104_729);
            let mut rows = || -> Vec<Row> {
                (0..20).map(|case| row(&case.to_string(), &noise.times(40, 50.0, 0.05, likeness))).collect()
            };
            let (before, after) = (rows(), rows());
            let comparison = compare(&before, &after, 0.0);
            wrong += usize::from(comparison.count(Verdict::Slower) + comparison.count(Verdict::Faster) > 0);
        }
        // 5 of 100 are expected at most; 11 or more of 100 at 5 % have a probability of 1 %.
        assert!(wrong <= 11, "{wrong} of 100 comparisons of equals found a change, likeness {likeness}");
    }
}

#[test]
fn a_change_that_is_certain_and_small_is_no_change() {
    let mut noise = Noise(5);
    let before = [row("a", &noise.times(100, 100.0, 0.001, 0.0))];
    let after = [row("a", &noise.times(100, 100.5, 0.001, 0.0))];
    assert_eq!(compare(&before, &after, 0.01).changes[0].verdict, Verdict::Noise);
    assert_eq!(compare(&before, &after, 0.002).changes[0].verdict, Verdict::Slower);
}

#[test]
fn three_samples_tell_nothing() {
    let (before, after) = ([row("a", &[1.0, 1.0, 1.0])], [row("a", &[2.0, 2.0, 2.0])]);
    assert_eq!(compare(&before, &after, 0.01).changes[0].verdict, Verdict::TooFew);
}

#[test]
fn rows_of_one_file_are_counted_and_a_moved_baseline_is_reported() {
    let mut noise = Noise(11);
    let mut baseline = |factor: f64| {
        let mut row = row("copy f32", &noise.times(30, 100.0 * factor, 0.002, 0.0));
        row.suite = "baseline".to_owned();
        row
    };
    let before = [baseline(1.0), row("only a", &[1.0; 5])];
    let after = [baseline(1.2), row("only b", &[1.0; 5]), row("also b", &[1.0; 5])];
    let text = compare(&before, &after, 0.01).text();
    for wanted in ["1 slower", "of 1 rows; 1 only in A, 2 only in B", "ran at another speed", "1.200"] {
        assert!(text.contains(wanted), "no {wanted:?} in {text}");
    }
}

#[test]
fn critical_values_and_quantiles_are_those_of_the_tables() {
    // Hollander, Wolfe and Chicken, table A.6, as U; the one-sided 5 % and 1 %.
    for (n, m, alpha, wanted) in [
        (5, 5, 0.05, Some(4)),
        (5, 5, 0.01, Some(1)),
        (10, 10, 0.05, Some(27)),
        (10, 10, 0.025, Some(23)),
        (20, 20, 0.025, Some(127)),
        (3, 3, 0.01, None),
    ] {
        assert_eq!(critical(n, m, alpha), wanted, "{n} and {m} at {alpha}");
    }
    // The exact and the normal distribution meet.
    let [exact, normal] = [20, 21].map(|n| critical(n, 20, 0.001).expect("a value"));
    assert!((exact..exact + 15).contains(&normal), "{exact} and {normal}");
    for (p, wanted) in [(0.975, 1.959_963_985), (0.5, 0.0), (1e-6, -4.753_424_309), (0.001, -3.090_232_306)] {
        assert!((normal_quantile(p) - wanted).abs() < 1e-7, "{p}: {}", normal_quantile(p));
    }
}

#[test]
fn the_launches_of_networks_are_told() {
    let with = |launches, metric: &str| {
        let mut row = row("net f32", &[10.0; 8]);
        (row.launches, row.metric) = (launches, metric.to_owned());
        row
    };
    let [before, after] = [98, 84].map(|launches| [with(Some(launches), "host"), with(None, "device")]);
    let told = compare(&before, &after, 0.02).text();
    assert!(told.contains("net f32 wgpu: 98 launches, then 84"), "{told}");
    assert_eq!(told.matches("launches").count(), 1, "{told}");
}
