//! `apus top`: a live view of the processes with endpoints.
//!
//! ```text
//!   sampler   reads the counters, in its own thread                ─▶ Sample
//!   model     the last two samples, and the user's selection       ─▶ Row
//!   view      draws the rows
//! ```

mod model;
mod sampler;
mod view;

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Args;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use signal_hook::consts::SIGTERM;

use crate::processes::parse_pid;
use apus_command_line::failure::Failure;
use apus_report::progress::can_move_cursor;
use model::{INTERVALS, Model};
use sampler::Sampler;

/// Watch running processes that use apus: RPCs, rates, round trips, grants, queues
///
/// Shows all processes of the same user that have endpoints, and the live RPCs of the selected one.
/// The round-trip time (RTT) is the time from a call to the end of its response; the serving time
/// is the time from a request's first packet to its reply. Senders are the peers whose messages are
/// arriving: what they may send, the part of it that is under way, and what they say waits with
/// them. `apus metrics PID` shows more of one process.
///
/// Keys: q quits, the arrows (or j and k) select a process, + and - change the interval, the space
/// bar pauses.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus top
  apus top 4711 --interval 0.5")]
pub(crate) struct TopArguments {
    /// Ids of the processes; without any, all processes of this user, including those that start
    /// later
    #[arg(value_name = "PID", value_parser = parse_pid)]
    pids: Vec<u32>,
    /// Seconds between two snapshots: 0.1 to 60
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = interval,
          allow_negative_numbers = true)]
    interval: f64,
}

fn interval(text: &str) -> Result<f64, String> {
    let (shortest, longest) = INTERVALS;
    let seconds = text.parse().ok().filter(|seconds| (shortest..=longest).contains(seconds));
    seconds.ok_or_else(|| format!("an interval is {shortest} to {longest} seconds; try 1"))
}

/// Longest time from a key to its effect. Chosen by us: short enough not to be noticed.
const TICK: Duration = Duration::from_millis(50);

/// Shows the view until the user quits.
///
/// # Errors
///
/// Standard input or output is not a terminal, the terminal can only append text, or it fails.
pub(crate) fn run(arguments: &TopArguments) -> Result<(), Failure> {
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return Err(unsuitable("needs a terminal"));
    }
    if !can_move_cursor() {
        return Err(unsuitable("needs a terminal that can move the cursor, and TERM names none"));
    }
    let ended = Arc::new(AtomicBool::new(false));
    // SIGHUP keeps its default action: without a terminal no state needs restoring, and a read of
    // its keys would never end.
    signal_hook::flag::register(SIGTERM, ended.clone())
        .map_err(|error| Failure::of("catch SIGTERM", &error))?;
    // A panic restores the terminal as well.
    let mut terminal =
        ratatui::try_init().map_err(|error| Failure::of("set up the terminal", &error))?;
    let result = show(arguments, &mut terminal, &ended);
    ratatui::restore();
    result.map_err(|error| Failure::of("draw on the terminal", &error))
}

fn unsuitable(problem: &str) -> Failure {
    let instead = "`apus metrics --all --count 0` works without one";
    Failure::Work(format!("`apus top` {problem}; {instead}"))
}

fn show(
    arguments: &TopArguments,
    terminal: &mut DefaultTerminal,
    ended: &AtomicBool,
) -> io::Result<()> {
    let sampler = Sampler::start(arguments.pids.clone(), arguments.interval)?;
    let mut model = Model::new(arguments.interval);
    while !ended.load(Ordering::Relaxed) {
        for sample in sampler.samples() {
            model.update(sample);
        }
        terminal.draw(|frame| view::draw(frame, &mut model))?;
        if !event::poll(TICK)? {
            continue;
        }
        if let Event::Key(key) = event::read()?
            && key.kind == KeyEventKind::Press
            && !handle_key(key, &mut model, &sampler)
        {
            break;
        }
    }
    Ok(())
}

/// Executes the command bound to a key, and returns whether to continue.
fn handle_key(key: KeyEvent, model: &mut Model, sampler: &Sampler) -> bool {
    match key.code {
        KeyCode::Char('q') | KeyCode::Esc => return false,
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return false,
        KeyCode::Down | KeyCode::Char('j') => model.select_next(),
        KeyCode::Up | KeyCode::Char('k') => model.select_previous(),
        KeyCode::Char(' ') => model.toggle_pause(),
        KeyCode::Char('+' | '=') => sampler.set_interval(model.scale_interval(2.0)),
        KeyCode::Char('-') => sampler.set_interval(model.scale_interval(0.5)),
        _ => {}
    }
    true
}
