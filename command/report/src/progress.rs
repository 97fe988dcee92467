//! The progress of an experiment on a terminal.

use std::env;
use std::ffi::OsStr;
use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A progress bar on standard error. It appears only on a terminal that can move its cursor, after
/// two seconds. It draws only when a method is called, so that it takes no time from the
/// measurement.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    began: Instant,
}

/// Duration of experiments without a progress bar. Source: the command line's contract.
const WORTH_WATCHING: Duration = Duration::from_secs(2);

/// Steps of an experiment that reports its progress as a share.
const WHOLE: u64 = 1_000;

impl Progress {
    /// Returns the progress of an experiment of `steps` steps.
    #[must_use]
    pub fn of(steps: usize) -> Self {
        Self::new(steps as u64, "{bar:30} {pos}/{len}  {msg}")
    }

    /// Returns the progress of an experiment that reports a share.
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

    /// Starts the next step, described by `what`.
    pub fn step(&self, what: &str) {
        self.appear();
        self.bar.set_message(what.to_owned());
        self.bar.inc(1);
    }

    /// Describes the activity within the current step.
    pub fn note(&self, what: &str) {
        self.appear();
        self.bar.set_message(what.to_owned());
        self.bar.tick();
    }

    /// Shows that `share` of 1 is done, with a description.
    pub fn done(&self, share: f64, what: &str) {
        self.appear();
        self.bar.set_message(what.to_owned());
        self.bar.set_position((share * WHOLE as f64) as u64);
    }

    fn appear(&self) {
        let is_due = self.bar.is_hidden() && self.began.elapsed() > WORTH_WATCHING;
        if is_due && stderr().is_terminal() && can_move_cursor() {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Returns whether the terminal of this process can move its cursor, by its name in TERM. A
/// terminal without a name, and the terminal `dumb`, show escape sequences as text.
#[must_use]
pub fn can_move_cursor() -> bool {
    env::var_os("TERM").is_some_and(|name| moves_cursor(&name))
}

fn moves_cursor(terminal: &OsStr) -> bool {
    !terminal.is_empty() && terminal != "dumb"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dumb_terminal_cannot_move_its_cursor() {
        let all = ["", "dumb", "xterm-256color", "linux"];
        let able = all.map(|name| moves_cursor(OsStr::new(name)));
        assert_eq!(able, [false, false, true, true]);
    }
}
