//! Senders: the peers with messages arriving at a process, as columns of tables.

use apus::introspection::{SenderRow, Senders};
use apus_report::result::short;

/// A column of a table of senders.
pub(crate) struct Column {
    pub(crate) name: &'static str,
    /// Characters of its widest usual cell.
    #[cfg_attr(not(feature = "top"), expect(dead_code, reason = "only `top` draws columns"))]
    pub(crate) width: u16,
    pub(crate) cell: fn(&SenderRow) -> String,
}

/// Columns shared by all tables of senders.
pub(crate) const COLUMNS: &[Column] = &[
    Column { name: "peer", width: 28, cell: |row| row.sender.peer.to_string() },
    Column { name: "endpoint", width: 28, cell: |row| row.endpoint.to_string() },
    Column { name: "messages", width: 8, cell: |row| row.sender.messages.to_string() },
    Column { name: "credit KB", width: 9, cell: |row| kilobytes(row.sender.credit) },
    Column { name: "in use KB", width: 9, cell: |row| kilobytes(row.sender.credit_used) },
    Column {
        name: "backlog KB",
        width: 10,
        cell: |row| row.sender.reported_backlog.map_or("-".to_owned(), kilobytes),
    },
    Column { name: "marks", width: 7, cell: |row| row.sender.marks.to_string() },
];

fn kilobytes(bytes: u64) -> String {
    short(bytes as f64 / 1e3)
}

/// Returns the cells of a row.
pub(crate) fn cells(row: &SenderRow) -> Vec<String> {
    COLUMNS.iter().map(|column| (column.cell)(row)).collect()
}

/// Returns the title of a table that shows the first `rows` of `senders`.
pub(crate) fn title(senders: &Senders, rows: usize) -> String {
    let left_out = senders.count > rows.min(senders.rows.len()) as u64;
    let which = if left_out { ", those with the most on the way shown" } else { "" };
    let plural = if senders.count == 1 { "" } else { "s" };
    format!("senders: messages are arriving from {} peer{plural}{which}", senders.count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use apus::introspection::SenderInfo;

    fn senders(count: u64) -> Senders {
        let sender = SenderInfo {
            peer: "10.0.0.7:4000".parse().unwrap(),
            messages: 2,
            credit: 4_616,
            credit_used: 17_000,
            reported_backlog: Some(16_384),
            marks: 71,
        };
        let row = SenderRow { endpoint: "127.0.0.1:4000".parse().unwrap(), sender };
        Senders { count, rows: vec![row; 3] }
    }

    #[test]
    fn credit_and_backlog_are_in_kilobytes_and_what_is_not_reported_is_a_dash() {
        let mut row = senders(3).rows[0];
        let rest = ["2", "4.62", "17.0", "16.4", "71"];
        assert_eq!(cells(&row), [&["10.0.0.7:4000", "127.0.0.1:4000"][..], &rest].concat());
        row.sender.reported_backlog = None;
        assert_eq!(cells(&row)[5], "-");
    }

    #[test]
    fn the_title_says_whether_some_are_left_out() {
        assert_eq!(title(&senders(3), 3), "senders: messages are arriving from 3 peers");
        assert!(title(&senders(1), 3).ends_with("from 1 peer"));
        for text in [title(&senders(3), 2), title(&senders(10_000), 3)] {
            assert!(text.ends_with("those with the most on the way shown"), "{text}");
        }
    }
}
