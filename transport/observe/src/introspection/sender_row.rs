//! The row of a peer whose messages are arriving, as other processes read it.

pub use apus_proto::SenderInfo;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// The peers of a process with messages that are arriving over the network, as the request
/// `senders` shows them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Senders {
    /// Number of all senders. A peer counts once for each endpoint or shard that it sends to.
    pub count: u64,
    /// Senders with the most outstanding bytes, at most [`Senders::MOST`], in descending order.
    pub rows: Vec<SenderRow>,
}

/// A peer with messages that are arriving.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SenderRow {
    /// Address of the endpoint.
    pub endpoint: SocketAddr,
    /// Bytes that the peer is permitted to send.
    #[serde(flatten)]
    pub sender: SenderInfo,
}

impl Senders {
    /// Largest number of rows. Chosen by us: they fill a screen, and grants go to fewer peers at a
    /// time.
    pub const MOST: usize = 32;

    /// Returns the senders of all endpoints and shards, each given with its address.
    pub(crate) fn merged(all: impl Iterator<Item = (SocketAddr, apus_proto::Senders)>) -> Self {
        let mut merged = Self::default();
        for (endpoint, senders) in all {
            merged.count += senders.count as u64;
            let row = |sender| SenderRow { endpoint, sender };
            merged.rows.extend(senders.first.into_iter().map(row));
        }
        merged.rows.sort_by_key(|row| row.sender.order());
        merged.rows.truncate(Self::MOST);
        merged
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(n: u16) -> SocketAddr {
        ([10, 0, 0, 1], n).into()
    }

    fn sender(port: u16, credit_used: u64) -> SenderInfo {
        SenderInfo {
            peer: address(port),
            messages: 1,
            credit: 9_000,
            credit_used,
            reported_backlog: None,
            marks: 3,
        }
    }

    #[test]
    fn the_rows_of_all_shards_are_sorted_and_bounded_and_all_senders_are_counted() {
        let mut shards = [apus_proto::Senders::default(), apus_proto::Senders::default()];
        for (shard, senders) in shards.iter_mut().enumerate() {
            senders.count = 5_000;
            senders.first = (0..Senders::MOST as u16)
                .map(|port| sender(port, 2 * u64::from(port) + shard as u64))
                .collect();
        }
        let merged = Senders::merged(shards.into_iter().map(|senders| (address(1), senders)));
        assert_eq!((merged.count, merged.rows.len()), (10_000, Senders::MOST));
        let used: Vec<_> = merged.rows.iter().map(|row| row.sender.credit_used).collect();
        assert!(used.is_sorted_by(|a, b| a > b) && used[0] == 2 * Senders::MOST as u64 - 1);
    }

    #[test]
    fn a_row_is_one_object() {
        let row = SenderRow { endpoint: address(1), sender: sender(2, 3) };
        let json = serde_json::to_value(row).unwrap();
        assert_eq!(json["peer"], "10.0.0.1:2");
        assert_eq!(json["credit_used"], 3);
        assert_eq!(json["marks"], 3);
        assert_eq!(serde_json::from_value::<SenderRow>(json).unwrap(), row);
    }

    #[test]
    fn a_process_that_does_not_count_marks_is_understood() {
        let mut row = SenderRow { endpoint: address(1), sender: sender(2, 3) };
        let mut json = serde_json::to_value(row).unwrap();
        json.as_object_mut().unwrap().remove("marks");
        row.sender.marks = 0;
        assert_eq!(serde_json::from_value::<SenderRow>(json).unwrap(), row);
    }
}
