//! What do all processes with endpoints do at this moment?
//!
//! ```text
//!   watch   asks the processes in a thread of its own     ─▶ Look
//!   model   what the user has chosen, the last two looks  ─▶ Row
//!   view    draws it
//! ```

mod model;
mod view;
mod watch;

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Args;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use signal_hook::consts::SIGTERM;

use crate::failure::Failure;
use crate::metrics::pid;
use model::Model;
use watch::Watch;

/// Watch processes with apus endpoints: RPCs, rates, round trips, grants, queues
///
/// A live view of all processes of the same user that have endpoints, and of the RPCs that live in the selected one. Keys: q ends
/// it, the arrows (or j and k) select a process, + and - change the interval, the space bar holds the picture. RTT is the time from
/// a call to the end of its response's arrival; serving, from a request's first packet to its reply. `apus metrics PID` shows
/// more of one process.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus top
  apus top 4711 --interval 0.5")]
pub(crate) struct Arguments {
    /// The processes; without any, all of this user, also those that start later
    #[arg(value_name = "PID", value_parser = pid)]
    pids: Vec<u32>,
    /// Seconds between two looks: 0.1 to 60
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = interval,
          allow_negative_numbers = true)]
    interval: f64,
}

/// Shortest and longest interval, in seconds.
const INTERVALS: (f64, f64) = (0.1, 60.0);

fn interval(text: &str) -> Result<f64, String> {
    let (least, most) = INTERVALS;
    let seconds = text.parse().ok().filter(|seconds| (least..=most).contains(seconds));
    seconds.ok_or_else(|| format!("an interval is {least} to {most} seconds; try 1"))
}

/// How long keys may wait. Ours: nobody notices.
const TICK: Duration = Duration::from_millis(50);

/// Shows it until the user has seen enough.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        let text = "`apus top` needs a terminal; `apus metrics --all --count 0` does without";
        return Err(Failure::Work(text.to_owned()));
    }
    let ended = Arc::new(AtomicBool::new(false));
    // Not SIGHUP: if the terminal has gone there is nothing to restore, and waiting for its keys never ends.
    signal_hook::flag::register(SIGTERM, ended.clone())
        .map_err(|error| Failure::of("catch SIGTERM", &error))?;
    // Restored by a panic, too.
    let mut terminal =
        ratatui::try_init().map_err(|error| Failure::of("set up the terminal", &error))?;
    let shown = show(arguments, &mut terminal, &ended);
    ratatui::restore();
    shown.map_err(|error| Failure::of("draw on the terminal", &error))
}

fn show(
    arguments: &Arguments,
    terminal: &mut DefaultTerminal,
    ended: &AtomicBool,
) -> io::Result<()> {
    let watch = Watch::start(arguments.pids.clone(), arguments.interval)?;
    let mut model = Model::new(arguments.interval);
    while !ended.load(Ordering::Relaxed) {
        for look in watch.looks() {
            model.see(look);
        }
        terminal.draw(|frame| view::draw(frame, &mut model))?;
        if !event::poll(TICK)? {
            continue;
        }
        if let Event::Key(key) = event::read()?
            && key.kind == KeyEventKind::Press
            && !pressed(key, &mut model, &watch)
        {
            break;
        }
    }
    Ok(())
}

/// Does what a key stands for; whether to go on.
fn pressed(key: KeyEvent, model: &mut Model, watch: &Watch) -> bool {
    match key.code {
        KeyCode::Char('q') | KeyCode::Esc => return false,
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return false,
        KeyCode::Down | KeyCode::Char('j') => model.select_next(),
        KeyCode::Up | KeyCode::Char('k') => model.select_previous(),
        KeyCode::Char(' ') => model.hold(),
        KeyCode::Char('+' | '=') => watch.set_interval(model.change_interval(2.0)),
        KeyCode::Char('-') => watch.set_interval(model.change_interval(0.5)),
        _ => {}
    }
    true
}
