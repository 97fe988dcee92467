//! Methods without a wait for the response.

use crate::serve;
use apus_rpc::{Metadata, Notifications};
use std::sync::{Arc, Mutex};

#[apus_rpc::service]
trait Log {
    /// Writes a line.
    #[notify]
    async fn write(&self, line: String);
    #[notify]
    #[idempotent]
    async fn flush(&self);
    async fn lines(&self) -> Vec<String>;
}

#[derive(Default)]
struct InMemory(Arc<Mutex<Vec<String>>>);

impl Log for InMemory {
    async fn write(&self, line: String) {
        assert!(line != "panic");
        self.0.lock().unwrap().push(line);
    }

    async fn flush(&self) {}

    async fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

#[tokio::test]
async fn clients_do_not_wait_and_the_ends_are_counted() {
    let channel = serve(LogServer::new(InMemory::default())).await;
    let client = LogClient::new(channel).with_notifications(Notifications::new(2));
    for line in ["a", "b", "panic", "c"] {
        client.write(line.into()).await.unwrap();
    }
    client.clone().with_metadata(Metadata::new()).flush().await.unwrap();
    client.notifications().ended().await;
    let counts = client.notifications().counts();
    assert_eq!((counts.sent, counts.answered, counts.failed), (5, 4, 1), "clones share them");
    let mut lines = client.lines().await.unwrap();
    lines.sort();
    assert_eq!(lines, ["a", "b", "c"]);
}
