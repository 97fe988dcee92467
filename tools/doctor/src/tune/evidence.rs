//! What does a setting's value do, and is that proven?

use serde::Serialize;

use super::options::Goal;
use apus_report::result::{short, table};
use apus_report::stats::{Difference, Paired, Spread};

/// A gain below this is not worth a line in a file. Ours: what two versions of a compiler differ by.
const WORTHWHILE: f64 = 1.02;

/// What became of one setting.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Decision {
    /// Its name in files.
    pub setting: &'static str,
    /// The value that was in force.
    pub before: String,
    /// The value that is recommended.
    pub taken: String,
    /// All values that were tried, that in force first.
    pub candidates: Vec<Candidate>,
}

/// One value of a setting.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Candidate {
    /// In words, as files have it.
    pub value: String,
    /// What it does for each goal.
    pub effects: Vec<Effect>,
}

/// What a value does for a goal.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Effect {
    /// The goal.
    pub goal: Goal,
    /// The figure that counts for it, like `p50_us`.
    pub figure: &'static str,
    /// The figure over the rounds.
    pub spread: Spread,
    /// How many times as good as the value in force it is, more being better; `None` for that itself.
    pub paired: Option<Paired>,
}

impl Effect {
    /// Of a figure in each round, held against that of the value in force in the same round; `others` is the number of values
    /// that are: who asks often is wrong more often, so that each must be as much surer (Bonferroni).
    pub(super) fn of(goal: Goal, figures: &[f64], base: Option<&[f64]>, others: usize) -> Self {
        let confidence = 1.0 - (1.0 - Difference::CONFIDENCE) / others.max(1) as f64;
        let paired = base.and_then(|base| {
            // Turned so that more is better.
            let (before, after) =
                if goal.less_is_better() { (figures, base) } else { (base, figures) };
            Paired::of(before, after, confidence)
        });
        Self { goal, figure: goal.figure(), spread: Spread::over(figures), paired }
    }

    fn is_better(&self) -> bool {
        self.paired.is_some_and(|paired| paired.low > 1.0 && paired.ratio >= WORTHWHILE)
    }

    fn is_worse(&self) -> bool {
        self.paired.is_some_and(|paired| paired.high < 1.0)
    }

    /// `better`, `worse`, or nothing that is proven.
    fn verdict(&self) -> &'static str {
        match self.paired {
            None => "in force",
            Some(paired) if paired.high < 1.0 => "worse",
            Some(paired) if paired.low > 1.0 => "better",
            Some(_) => "no difference proven",
        }
    }

    /// `1.32 (1.28 to 1.36)` times as good.
    fn factor(&self) -> String {
        self.paired.map_or_else(String::new, |paired| {
            let Paired { ratio, low, high, .. } = paired;
            format!("{} ({} to {}) times as good", short(ratio), short(low), short(high))
        })
    }

    /// For a file: `latency p50_us 5.91, 1.32 (1.28 to 1.36) times as good: better`.
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
    /// Whether it may be taken (T1).
    fn is_good(&self) -> bool {
        self.effects.iter().any(Effect::is_better) && !self.effects.iter().any(Effect::is_worse)
    }

    /// How many times as good it is for all goals together: the geometric mean, without its count, which is the same
    /// for all.
    fn merit(&self) -> f64 {
        self.effects.iter().filter_map(|effect| effect.paired).map(|paired| paired.ratio.ln()).sum()
    }
}

impl Decision {
    /// Takes the best of the values that may be taken, or the first of those that are as good but for what is not
    /// worthwhile: they come in the order of what they cost. That in force, which is the first of all, if none may be taken.
    pub(super) fn between(setting: &'static str, candidates: Vec<Candidate>) -> Self {
        let before = candidates[0].value.clone();
        let good = || candidates[1..].iter().filter(|candidate| candidate.is_good());
        let most = good().map(Candidate::merit).max_by(f64::total_cmp);
        let enough = most.map(|most| most - WORTHWHILE.ln() * candidates[0].effects.len() as f64);
        let best =
            good().find(|candidate| enough.is_some_and(|enough| candidate.merit() >= enough));
        let taken = best.map_or_else(|| before.clone(), |best| best.value.clone());
        Self { setting, before, taken, candidates }
    }

    /// Whether something else is recommended than what was in force.
    #[must_use]
    pub fn is_a_change(&self) -> bool {
        self.taken != self.before
    }
}

/// Lines of a table for one setting.
pub(super) fn lines(decision: &Decision) -> Vec<Vec<String>> {
    let each = decision.candidates.iter().flat_map(|candidate| {
        candidate.effects.iter().enumerate().map(move |(index, effect)| {
            let name = format!("{} = {}", decision.setting, candidate.value);
            let taken = index == 0 && decision.is_a_change() && candidate.value == decision.taken;
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
                if taken { format!("{verdict}: recommended") } else { verdict.to_owned() },
            ]
        })
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: [f64; 4] = [10.0, 10.1, 9.9, 10.0];

    fn candidate(value: &str, latency: [f64; 4], rate: [f64; 4], base: bool) -> Candidate {
        let base = (!base).then_some(&BASE[..]);
        let effects = vec![
            Effect::of(Goal::Latency, &latency, base, 1),
            Effect::of(Goal::Rate, &rate, base, 1),
        ];
        Candidate { value: value.to_owned(), effects }
    }

    fn times(factor: f64) -> [f64; 4] {
        let noise = [1.001, 0.999, 1.0005, 0.9995];
        std::array::from_fn(|round| BASE[round] * factor * noise[round])
    }

    fn taken(others: Vec<Candidate>) -> String {
        let candidates =
            std::iter::once(candidate("now", BASE, BASE, true)).chain(others).collect();
        Decision::between("poll", candidates).taken
    }

    #[test]
    fn less_time_is_better_and_so_are_more_calls() {
        let faster = candidate("a", times(0.5), times(2.0), false);
        let factors = faster.effects.clone().into_iter().map(|effect| effect.paired.unwrap().ratio);
        for factor in factors {
            assert!((factor - 2.0).abs() < 0.01, "{factor}");
        }
        assert_eq!(taken(vec![faster]), "a");
    }

    #[test]
    fn what_is_worse_for_any_goal_is_not_taken_and_neither_is_what_gains_nothing() {
        assert_eq!(taken(vec![candidate("a", times(0.5), times(0.9), false)]), "now");
        assert_eq!(
            taken(vec![candidate("a", times(1.0), times(1.01), false)]),
            "now",
            "a hundredth"
        );
        let wild = [5.0, 30.0, 4.0, 20.0];
        assert_eq!(taken(vec![candidate("a", wild, wild, false)]), "now", "nothing is proven");
        assert_eq!(taken(Vec::new()), "now");
    }

    #[test]
    fn the_more_values_are_tried_the_surer_each_must_be() {
        let figures = [9.0, 10.0, 9.1, 9.6];
        let width = |others| {
            let paired = Effect::of(Goal::Latency, &figures, Some(&BASE), others).paired.unwrap();
            paired.high - paired.low
        };
        assert!(width(4) > 1.5 * width(1));
    }

    #[test]
    fn the_best_of_the_good_ones_is_taken() {
        let others = vec![
            candidate("good", times(0.9), times(1.1), false),
            candidate("best", times(0.8), times(1.2), false),
            candidate("bad", times(0.1), times(0.5), false),
        ];
        assert_eq!(taken(others), "best");
        let alike = vec![
            candidate("cheap", times(0.503), times(1.0), false),
            candidate("dear", times(0.5), times(1.0), false),
        ];
        assert_eq!(taken(alike), "cheap", "they differ by less than a fiftieth");
    }
}
