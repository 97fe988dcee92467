//! Evidence for a setting: effects of its values, and the decision.

use serde::Serialize;

use super::options::Goal;
use apus_report::result::{short, table};
use apus_report::stats::{Difference, Paired, Spread};

/// Minimum gain of a recommendation. Chosen by us: the difference between two compiler versions.
const MIN_GAIN: f64 = 1.02;

/// Decision about one setting.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Decision {
    /// Name of the setting in configuration files.
    pub setting: &'static str,
    /// Current value.
    pub before: String,
    /// Recommended value.
    #[serde(rename = "taken")]
    pub recommended: String,
    /// Compared values, the current one first.
    pub candidates: Vec<Candidate>,
}

/// One value of a setting.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Candidate {
    /// The value as in configuration files.
    pub value: String,
    /// Effect for each goal.
    pub effects: Vec<Effect>,
}

/// Effect of a value on a goal.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Effect {
    /// The goal.
    pub goal: Goal,
    /// The figure that measures the goal, for instance `p50_us`.
    pub figure: &'static str,
    /// The figure over all rounds.
    pub spread: Spread,
    /// Improvement over the current value, greater than 1 if better; `None` for the current value
    /// itself.
    pub paired: Option<Paired>,
}

impl Effect {
    /// Compares the figures of each round with the current value's figures in the same round;
    /// figures have the numbers of their rounds. `others` is the number of values compared with it;
    /// the confidence of each is raised accordingly (Bonferroni).
    pub(super) fn of(
        goal: Goal,
        figures: &[(usize, f64)],
        base: Option<&[(usize, f64)]>,
        others: usize,
    ) -> Self {
        let confidence = 1.0 - (1.0 - Difference::CONFIDENCE) / others.max(1) as f64;
        let paired = base.and_then(|base| {
            let of_round = |round| base.iter().find(|(other, _)| *other == round);
            let both = figures.iter().filter_map(|(round, own)| Some((*own, of_round(*round)?.1)));
            let (own, base): (Vec<f64>, Vec<f64>) = both.unzip();
            // Ordered so that a greater ratio means better.
            let (before, after) = if goal.less_is_better() { (own, base) } else { (base, own) };
            Paired::of(&before, &after, confidence)
        });
        let values: Vec<f64> = figures.iter().map(|(_, figure)| *figure).collect();
        Self { goal, figure: goal.figure(), spread: Spread::over(&values), paired }
    }

    fn is_better(&self) -> bool {
        self.paired.is_some_and(|paired| paired.low > 1.0 && paired.ratio >= MIN_GAIN)
    }

    fn is_worse(&self) -> bool {
        self.paired.is_some_and(|paired| paired.high < 1.0)
    }

    /// Returns `better`, `worse`, or that no difference is proven.
    fn verdict(&self) -> &'static str {
        match self.paired {
            None => "current",
            Some(paired) if paired.high < 1.0 => "worse",
            Some(paired) if paired.low > 1.0 => "better",
            Some(_) => "no difference proven",
        }
    }

    /// Returns the improvement as text: `1.32 (1.28 to 1.36) times as good`.
    fn factor(&self) -> String {
        self.paired.map_or_else(String::new, |paired| {
            let Paired { ratio, low, high, .. } = paired;
            format!("{} ({} to {}) times as good", short(ratio), short(low), short(high))
        })
    }

    /// Returns a line for a file: `latency p50_us 5.91, 1.32 (1.28 to 1.36) times as good: better`.
    pub(super) fn sentence(&self) -> String {
        let factor =
            if self.paired.is_some() { format!(", {}", self.factor()) } else { String::new() };
        format!(
            "{} {} {}{factor}: {}",
            self.goal,
            self.figure,
            table::spread_in_words(&self.spread),
            self.verdict()
        )
    }
}

impl Candidate {
    /// Returns whether the value may be recommended (TUNE-1).
    fn is_eligible(&self) -> bool {
        self.effects.iter().any(Effect::is_better) && !self.effects.iter().any(Effect::is_worse)
    }

    /// Returns the logarithm of the improvement for all goals together. It is the geometric mean
    /// without its exponent, which all values share.
    fn merit(&self) -> f64 {
        self.effects.iter().filter_map(|effect| effect.paired).map(|paired| paired.ratio.ln()).sum()
    }
}

impl Decision {
    /// Selects the best recommendable value, or an earlier value that is worse by less than the
    /// minimum gain, since values are ordered by cost. Keeps the current value, which is the first,
    /// if no other is recommendable.
    pub(super) fn between(setting: &'static str, candidates: Vec<Candidate>) -> Self {
        let before = candidates[0].value.clone();
        let good = || candidates[1..].iter().filter(|candidate| candidate.is_eligible());
        let most = good().map(Candidate::merit).max_by(f64::total_cmp);
        let enough = most.map(|most| most - MIN_GAIN.ln() * candidates[0].effects.len() as f64);
        let best =
            good().find(|candidate| enough.is_some_and(|enough| candidate.merit() >= enough));
        let recommended = best.map_or_else(|| before.clone(), |best| best.value.clone());
        Self { setting, before, recommended, candidates }
    }

    /// Returns whether another value than the current one is recommended.
    #[must_use]
    pub fn is_change(&self) -> bool {
        self.recommended != self.before
    }
}

/// Returns the table lines of one setting.
pub(super) fn lines(decision: &Decision) -> Vec<Vec<String>> {
    let each = decision.candidates.iter().flat_map(|candidate| {
        candidate.effects.iter().enumerate().map(move |(index, effect)| {
            let name = format!("{} = {}", decision.setting, candidate.value);
            let recommended =
                index == 0 && decision.is_change() && candidate.value == decision.recommended;
            let verdict = effect.verdict();
            vec![
                if index == 0 { name } else { String::new() },
                effect.goal.to_string(),
                format!(
                    "{} {}",
                    table::spread_in_words(&effect.spread),
                    effect.figure.replace('_', " ")
                ),
                effect.factor(),
                if recommended { format!("{verdict}: recommended") } else { verdict.to_owned() },
            ]
        })
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the figures of rounds, with their numbers.
    fn rounds(figures: &[f64]) -> Vec<(usize, f64)> {
        figures.iter().copied().enumerate().collect()
    }

    const BASE: [f64; 4] = [10.0, 10.1, 9.9, 10.0];

    fn candidate(value: &str, latency: [f64; 4], rate: [f64; 4], base: bool) -> Candidate {
        let usual = rounds(&BASE);
        let base = (!base).then_some(&usual[..]);
        let effects = vec![
            Effect::of(Goal::Latency, &rounds(&latency), base, 1),
            Effect::of(Goal::Rate, &rounds(&rate), base, 1),
        ];
        Candidate { value: value.to_owned(), effects }
    }

    fn times(factor: f64) -> [f64; 4] {
        let noise = [1.001, 0.999, 1.0005, 0.9995];
        std::array::from_fn(|round| BASE[round] * factor * noise[round])
    }

    fn recommended(others: Vec<Candidate>) -> String {
        let candidates =
            std::iter::once(candidate("now", BASE, BASE, true)).chain(others).collect();
        Decision::between("poll", candidates).recommended
    }

    #[test]
    fn less_time_is_better_and_so_are_more_calls() {
        let faster = candidate("a", times(0.5), times(2.0), false);
        let factors = faster.effects.clone().into_iter().map(|effect| effect.paired.unwrap().ratio);
        for factor in factors {
            assert!((factor - 2.0).abs() < 0.01, "{factor}");
        }
        assert_eq!(recommended(vec![faster]), "a");
    }

    #[test]
    fn values_worse_for_a_goal_or_without_gain_are_not_recommended() {
        assert_eq!(recommended(vec![candidate("a", times(0.5), times(0.9), false)]), "now");
        assert_eq!(
            recommended(vec![candidate("a", times(1.0), times(1.01), false)]),
            "now",
            "a hundredth"
        );
        let wild = [5.0, 30.0, 4.0, 20.0];
        assert_eq!(
            recommended(vec![candidate("a", wild, wild, false)]),
            "now",
            "nothing is proven"
        );
        assert_eq!(recommended(Vec::new()), "now");
    }

    #[test]
    fn confidence_grows_with_the_number_of_values() {
        let figures = [9.0, 10.0, 9.1, 9.6];
        let width = |others| {
            let effect = Effect::of(Goal::Latency, &rounds(&figures), Some(&rounds(&BASE)), others);
            let paired = effect.paired.unwrap();
            paired.high - paired.low
        };
        assert!(width(4) > 1.5 * width(1));
    }

    #[test]
    fn a_round_that_one_value_lost_does_not_count_for_the_other() {
        let faster = [(0, 5.0), (2, 4.95), (3, 5.0)];
        let paired = Effect::of(Goal::Latency, &faster, Some(&rounds(&BASE)), 1).paired.unwrap();
        assert_eq!(paired.pairs, 3);
        assert!((paired.ratio - 2.0).abs() < 1e-9, "{paired:?}");
    }

    #[test]
    fn the_best_eligible_value_is_recommended() {
        let others = vec![
            candidate("good", times(0.9), times(1.1), false),
            candidate("best", times(0.8), times(1.2), false),
            candidate("bad", times(0.1), times(0.5), false),
        ];
        assert_eq!(recommended(others), "best");
        let alike = vec![
            candidate("cheap", times(0.503), times(1.0), false),
            candidate("expensive", times(0.5), times(1.0), false),
        ];
        assert_eq!(recommended(alike), "cheap", "they differ by less than a fiftieth");
    }
}
