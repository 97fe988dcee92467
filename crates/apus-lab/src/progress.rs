//! How far is an experiment?

use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A progress bar on standard error. It appears on a terminal only, and only once the experiment has
/// taken two seconds. It draws when a step begins and never in between, so that it takes no time
/// from what is being measured.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    began: Instant,
}

/// Nobody needs to watch anything shorter. Source: the command line's contract.
const WORTH_WATCHING: Duration = Duration::from_secs(2);

impl Progress {
    /// For an experiment of that many steps.
    #[must_use]
    pub(crate) fn of(steps: usize) -> Self {
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len}  {msg}").expect("constant");
        let bar = ProgressBar::with_draw_target(Some(steps as u64), ProgressDrawTarget::hidden());
        bar.set_style(style);
        Self { bar, began: Instant::now() }
    }

    /// The next step begins; `what` says which.
    pub(crate) fn step(&self, what: &str) {
        if self.bar.is_hidden() && self.began.elapsed() > WORTH_WATCHING && stderr().is_terminal() {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.set_message(what.to_owned());
        self.bar.inc(1);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
