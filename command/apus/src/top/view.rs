//! View: draws the model on the terminal.

use apus::MessageProgress;
use apus::introspection::RpcRow;
use apus_report::result::short;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Cell, Paragraph, Row as Cells, Table};

use super::model::{Figures, Model, Row};
use crate::senders::{self, COLUMNS};

/// Draws the title, the processes, and the senders and RPCs of the selected process.
pub(super) fn draw(frame: &mut Frame<'_>, model: &mut Model) {
    // The table of processes gets the lines it needs, up to half of the screen; three of them are
    // its frame and header.
    let most = frame.area().height / 2;
    // A line for each process and for each of its shards, and three for the border and the names.
    let lines: usize = model.rows.iter().map(|row| 1 + row.shards.len()).sum();
    let wanted = u16::try_from(lines).unwrap_or(u16::MAX).saturating_add(3);
    let sending = model.selected().map_or(0, |row| row.senders.rows.len());
    let heights = [
        Constraint::Length(1),
        Constraint::Length(wanted.clamp(4, most.max(4))),
        Constraint::Length(height_of_senders(sending, frame.area().height)),
        Constraint::Fill(1),
    ];
    let [head, above, middle, below] = Layout::vertical(heights).areas(frame.area());
    frame.render_widget(title(model), head);
    processes(frame, above, model);
    if let Some(row) = model.selected() {
        senders(frame, middle, row);
    }
    rpcs(frame, below, model.selected());
}

/// Returns the height of the table for this number of senders: the lines it needs, up to a quarter
/// of the screen. Returns 0 without senders, or if no sender would fit.
fn height_of_senders(senders: usize, screen: u16) -> u16 {
    /// The frame and the header.
    const REST: u16 = 3;
    let rows = u16::try_from(senders).unwrap_or(u16::MAX).min((screen / 4).saturating_sub(REST));
    if rows == 0 { 0 } else { rows + REST }
}

fn title(model: &Model) -> Line<'static> {
    let paused = if model.paused { ", paused" } else { "" };
    let text = format!(
        "apus top: {} process{}, every {} s{paused}    q quit  ↑↓ select  +- interval  space pause",
        model.rows.len(),
        if model.rows.len() == 1 { "" } else { "es" },
        short(model.interval)
    );
    Line::from(text).style(Style::new().add_modifier(Modifier::BOLD))
}

/// Columns of the table of processes, with their widths. Canaries and the process label follow; the
/// label fills the rest.
const PROCESSES: [(&str, u16); 15] = [
    ("PID", 8),
    ("calls/s", 8),
    ("served/s", 8),
    ("MB/s", 7),
    ("RTT p50", 8),
    ("p99 µs", 8),
    ("serve p99", 9),
    ("RPCs", 6),
    ("waiting", 7),
    ("grantable", 9),
    ("granted MB/s", 12),
    ("incoming KB", 11),
    ("sending KB", 10),
    ("resent/s", 8),
    ("cores", 6),
];

/// Index of the column of the cores; the canaries follow.
const CORES: usize = PROCESSES.len() - 1;

fn processes(frame: &mut Frame<'_>, area: Rect, model: &mut Model) {
    let names = PROCESSES.iter().map(|(name, _)| *name).chain(["canaries", "process"]);
    let header = Cells::new(names).style(Style::new().add_modifier(Modifier::UNDERLINED));
    let widths = PROCESSES.iter().map(|(_, width)| Constraint::Length(*width));
    let widths: Vec<_> = widths.chain([Constraint::Length(8), Constraint::Min(12)]).collect();
    let block = Block::bordered().title("processes");
    if model.rows.is_empty() {
        let text = if model.has_sample {
            "no process of this user has an apus endpoint that can be inspected; `apus serve` starts one"
        } else {
            "waiting for the first snapshots"
        };
        frame.render_widget(Paragraph::new(text).block(block), area);
        return;
    }
    let table = Table::new(model.rows.iter().map(process), widths)
        .header(header)
        .block(block)
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    frame.render_stateful_widget(table, area, &mut model.table);
}

/// Returns the row of a process, with a line for each of its shards below its own.
fn process(row: &Row) -> Cells<'_> {
    let figures = row.figures.as_ref().map_or_else(|| vec!["-".to_owned(); 15], figures);
    let mut cells: Vec<String> = [row.pid.to_string()].into_iter().chain(figures).collect();
    cells.push(row.label.clone());
    for (name, shard) in &row.shards {
        let line = [String::new()].into_iter().chain(self::figures(shard)).chain([name.clone()]);
        for (at, (cell, text)) in cells.iter_mut().zip(line).enumerate() {
            // Processor time and canaries belong to the whole process.
            let text = if at == CORES || at == CORES + 1 { String::new() } else { text };
            *cell = format!("{cell}\n{text}");
        }
    }
    let height = u16::try_from(1 + row.shards.len()).unwrap_or(u16::MAX);
    Cells::new(cells.into_iter().map(Cell::from)).height(height)
}

/// Returns the cells between the process id and the label.
fn figures(figures: &Figures) -> Vec<String> {
    let micros =
        |nanos: Option<u64>| nanos.map_or("-".to_owned(), |nanos| short(nanos as f64 / 1e3));
    let kilobytes = |bytes: u64| short(bytes as f64 / 1e3);
    vec![
        short(figures.calls),
        short(figures.served),
        short(figures.megabytes),
        micros(figures.rtt[0]),
        micros(figures.rtt[1]),
        micros(figures.serving[1]),
        figures.rpcs.to_string(),
        figures.waiting.to_string(),
        figures.grantable.to_string(),
        short(figures.granted),
        kilobytes(figures.incoming),
        kilobytes(figures.sending),
        short(figures.resent),
        short(figures.cores),
        figures.canaries.to_string(),
    ]
}

fn senders(frame: &mut Frame<'_>, area: Rect, row: &Row) {
    let header = Cells::new(COLUMNS.iter().map(|column| column.name))
        .style(Style::new().add_modifier(Modifier::UNDERLINED));
    let widths = COLUMNS.iter().map(|column| Constraint::Length(column.width));
    let title = senders::title(&row.senders, usize::from(area.height.saturating_sub(3)));
    let cells = row.senders.rows.iter().map(|row| Cells::new(senders::cells(row)));
    frame.render_widget(
        Table::new(cells, widths).header(header).block(Block::bordered().title(title)),
        area,
    );
}

fn rpcs(frame: &mut Frame<'_>, area: Rect, row: Option<&Row>) {
    let header = ["role", "peer", "state", "age ms", "silent ms", "resends", "sent", "received"];
    let widths = [6, 28, 10, 10, 10, 7, 36, 36].map(Constraint::Length);
    let pid = row.map_or(String::new(), |row| format!(" of process {}", row.pid));
    let (all, more) = row.map_or((0, ""), |row| {
        let over = row.rpcs.len() > usize::from(area.height.saturating_sub(3));
        (row.rpcs.len(), if over { ", the oldest shown" } else { "" })
    });
    let block = Block::bordered().title(format!("live RPCs{pid}: {all} over the network{more}"));
    let cells = row.map_or(&[][..], |row| &row.rpcs).iter().map(rpc);
    let header = Cells::new(header).style(Style::new().add_modifier(Modifier::UNDERLINED));
    frame.render_widget(Table::new(cells, widths).header(header).block(block), area);
}

fn rpc(rpc: &RpcRow) -> Cells<'_> {
    let millis = |nanos: u64| short(nanos as f64 / 1e6);
    let message = |message: Option<MessageProgress>| match message {
        // The granted offset matters only until the whole message is granted.
        Some(MessageProgress { length, done, granted }) if granted < length => {
            format!("{done} of {length}, {granted} granted")
        }
        Some(MessageProgress { length, done, .. }) => format!("{done} of {length}"),
        None => "-".to_owned(),
    };
    Cells::new([
        rpc.role.clone(),
        rpc.peer.to_string(),
        rpc.state.clone(),
        millis(rpc.age_nanos),
        millis(rpc.silent_nanos),
        rpc.asks.to_string(),
        message(rpc.outgoing),
        message(rpc.incoming),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use apus::introspection::{SenderInfo, SenderRow, Senders};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    /// Returns the screen as text.
    fn screen(model: &mut Model, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, model)).unwrap();
        terminal.backend().to_string()
    }

    fn model() -> Model {
        let rpc = RpcRow {
            endpoint: "127.0.0.1:4000".parse().unwrap(),
            id: 2,
            peer: "10.0.0.7:4000".parse().unwrap(),
            role: "client".to_owned(),
            state: "outgoing".to_owned(),
            age_nanos: 1_500_000,
            silent_nanos: 0,
            asks: 0,
            incoming: None,
            outgoing: Some(MessageProgress { length: 1_000_000, done: 70_000, granted: 80_000 }),
        };
        let sender = SenderRow {
            endpoint: "127.0.0.1:4000".parse().unwrap(),
            sender: SenderInfo {
                peer: "10.0.0.9:5000".parse().unwrap(),
                messages: 3,
                credit: 4_616,
                credit_used: 17_000,
                reported_backlog: Some(16_384),
                marks: 8_642,
            },
        };
        let figures = Figures {
            calls: 123_456.0,
            rtt: [Some(5_900), None],
            canaries: 2,
            ..Default::default()
        };
        let mut model = Model::new(0.5);
        model.has_sample = true;
        model.rows = vec![
            Row {
                pid: 41,
                label: "server at x".to_owned(),
                figures: None,
                shards: Vec::new(),
                rpcs: Vec::new(),
                senders: Senders::default(),
            },
            Row {
                pid: 42,
                label: "client at y".to_owned(),
                figures: Some(figures.clone()),
                shards: vec![("y shard 3".to_owned(), Figures { calls: 77.0, ..figures })],
                rpcs: vec![rpc],
                senders: Senders { count: 40, rows: vec![sender; 9] },
            },
        ];
        model.select_next();
        model.select_next();
        model
    }

    #[test]
    fn processes_and_the_rpcs_of_the_selected_one_are_shown() {
        let screen = screen(&mut model(), 170, 14);
        for part in
            ["2 processes, every 0.500 s", "q quit", "123456", "5.90", "client at y", "server at x"]
        {
            assert!(screen.contains(part), "{part}:\n{screen}");
        }
        assert!(screen.contains("y shard 3") && screen.contains("77.0"), "{screen}");
        assert!(screen.contains("live RPCs of process 42: 1 over the network"), "{screen}");
        assert!(
            screen.contains("10.0.0.7:4000") && screen.contains("70000 of 1000000, 80000 granted")
        );
    }

    #[test]
    fn the_senders_of_the_selected_process_are_shown_as_far_as_there_is_room() {
        let mut model = model();
        let shown = screen(&mut model, 170, 40);
        assert!(shown.contains("messages are arriving from 40 peers, those with"), "{shown}");
        for part in
            ["credit KB", "in use KB", "backlog KB", "4.62", "17.0", "16.4", "marks", "8642"]
        {
            assert!(shown.contains(part), "{part}:\n{shown}");
        }
        assert_eq!(shown.matches("10.0.0.9:5000").count(), 7, "a quarter of the screen:\n{shown}");
        assert!(shown.contains("live RPCs of process 42"), "{shown}");
        model.select_previous();
        assert!(!screen(&mut model, 170, 40).contains("senders:"), "it has none");
    }

    #[test]
    fn without_processes_the_view_says_what_to_do() {
        let mut model = Model::new(1.0);
        assert!(screen(&mut model, 100, 10).contains("waiting for"));
        model.update(Vec::new());
        assert!(screen(&mut model, 100, 10).contains("`apus serve` starts one"));
    }

    #[test]
    fn no_screen_is_too_small() {
        for (width, height) in [(1, 1), (3, 2), (20, 5), (400, 100)] {
            screen(&mut model(), width, height);
        }
    }
}
