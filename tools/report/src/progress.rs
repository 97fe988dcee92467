//! How far is an experiment?

use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A progress bar on standard error. It appears on a terminal only, and only once the experiment has
/// taken two seconds. It draws when it is told something and never in between, so that it takes no time
/// from what is being measured.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    began: Instant,
}

/// Nobody needs to watch anything shorter. Source: the command line's contract.
const WORTH_WATCHING: Duration = Duration::from_secs(2);

/// Steps of an experiment that has a share done instead of steps.
const WHOLE: u64 = 1_000;

impl Progress {
    /// For an experiment of that many steps.
    #[must_use]
    pub fn of(steps: usize) -> Self {
        Self::new(steps as u64, "{bar:30} {pos}/{len}  {msg}")
    }

    /// For an experiment that knows which share of it is done.
    #[must_use]
    pub fn of_whole() -> Self {
        Self::new(WHOLE, "{bar:30} {percent} %  {msg}")
    }

    fn new(length: u64, template: &str) -> Self {
        let style = ProgressStyle::with_template(template).expect("constant");
        let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::hidden());
        bar.set_style(style);
        Self { bar, began: Instant::now() }
    }

    /// The next step begins; `what` says which.
    pub fn step(&self, what: &str) {
        self.appear();
        self.bar.set_message(what.to_owned());
        self.bar.inc(1);
    }

    /// What is going on, in a step that has begun.
    pub fn note(&self, what: &str) {
        self.appear();
        self.bar.set_message(what.to_owned());
        self.bar.tick();
    }

    /// So much is done, of 1; `what` says more.
    pub fn done(&self, share: f64, what: &str) {
        self.appear();
        self.bar.set_message(what.to_owned());
        self.bar.set_position((share * WHOLE as f64) as u64);
    }

    fn appear(&self) {
        if self.bar.is_hidden() && self.began.elapsed() > WORTH_WATCHING && stderr().is_terminal() {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
