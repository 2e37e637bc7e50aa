//! Classifiers: a score for each class.

/// A class and its score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scored {
    /// The class, by number.
    pub class: usize,
    /// From 0 to 1, the higher the likelier.
    pub score: f32,
}

/// Scores as they are if they may be probabilities, else the softmax of them as logits.
pub fn probabilities(scores: &[f32]) -> Vec<f32> {
    if scores.iter().all(|score| (0.0..=1.0).contains(score)) {
        return scores.to_vec();
    }
    let most = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let exponentials: Vec<f32> = scores.iter().map(|score| (score - most).exp()).collect();
    let sum: f32 = exponentials.iter().sum();
    exponentials.iter().map(|exponential| exponential / sum).collect()
}

/// The `count` classes with the highest scores, the highest first.
pub fn best(scores: &[f32], count: usize) -> Vec<Scored> {
    let mut all: Vec<Scored> =
        scores.iter().enumerate().map(|(class, &score)| Scored { class, score }).collect();
    all.sort_by(|a, b| b.score.total_cmp(&a.score));
    all.truncate(count);
    all
}

/// The name of a class, if it has one that is not empty.
pub fn label(labels: &[String], class: usize) -> Option<&str> {
    labels.get(class).map(String::as_str).filter(|label| !label.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_that_are_no_probabilities_become_some() {
        assert_eq!(probabilities(&[0.25, 0.75]), [0.25, 0.75]);
        let found = probabilities(&[1.0, 1.0 + 3.0f32.ln(), -1000.0]);
        assert!((found[0] - 0.25).abs() < 1e-6 && (found[1] - 0.75).abs() < 1e-6 && found[2] == 0.0);
    }

    #[test]
    fn the_best_classes_come_first() {
        let classes: Vec<usize> = best(&[0.1, 0.6, 0.3], 2).iter().map(|one| one.class).collect();
        assert_eq!(classes, [1, 2]);
    }

    #[test]
    fn a_label_that_is_empty_is_none() {
        let labels = ["cat".to_owned(), String::new()];
        assert_eq!([0, 1, 2].map(|class| label(&labels, class)), [Some("cat"), None, None]);
    }
}
