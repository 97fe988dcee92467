//! A service with every kind of method.

use crate::serve;
use apus_rpc::{Code, Context, Execution, ServiceError, Status, Streaming};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum StoreError {
    Missing { key: String },
    Full,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Change {
    key: String,
    value: Option<Vec<u8>>,
}

/// A store.
#[apus_rpc::service(name = "test.Store")]
pub(crate) trait Store {
    /// Does nothing.
    async fn nothing(&self);
    /// Returns a value.
    #[idempotent]
    async fn get(&self, key: String) -> Option<Vec<u8>>;
    async fn put(&self, key: String, value: Vec<u8>) -> Result<usize, StoreError>;
    async fn list(&self, from: u32, to: u32) -> Streaming<u32>;
    async fn list_or_fail(&self, fail: bool) -> Result<Streaming<Change>, StoreError>;
    async fn sum(&self, times: u64, numbers: Streaming<u64>) -> u64;
    async fn sum_or_fail(&self, numbers: Streaming<u64>) -> Result<u64, StoreError>;
    async fn double(&self, numbers: Streaming<u64>) -> Streaming<u64>;
    /// Argument names that generated code uses as well.
    async fn names(&self, service: u8, request: u8, result: u8, response: u8, method: u8) -> u8;
    async fn panics(&self) -> u8;
    async fn time_left(&self) -> Option<Duration>;
    async fn r#match(&self) -> (u8, String);
}

#[derive(Default)]
struct InMemory(Mutex<BTreeMap<String, Vec<u8>>>);

impl Store for InMemory {
    async fn nothing(&self) {}

    async fn get(&self, key: String) -> Option<Vec<u8>> {
        self.0.lock().unwrap().get(&key).cloned()
    }

    async fn put(&self, key: String, value: Vec<u8>) -> Result<usize, StoreError> {
        tokio::task::yield_now().await;
        let mut map = self.0.lock().unwrap();
        if map.len() > 1 {
            return Err(StoreError::Full);
        }
        map.insert(key, value);
        Ok(map.len())
    }

    async fn list(&self, from: u32, to: u32) -> Streaming<u32> {
        Streaming::from_items(from..to)
    }

    async fn list_or_fail(&self, fail: bool) -> Result<Streaming<Change>, StoreError> {
        if fail {
            return Err(StoreError::Missing { key: "k".into() });
        }
        let (sender, stream) = Streaming::channel(1);
        tokio::spawn(async move {
            for number in 0..100_u8 {
                let change = Change { key: number.to_string(), value: Some(vec![number; 2_000]) };
                sender.send(change).await.unwrap();
            }
            sender.fail(Status::new(Code::DataLoss, "the end")).await.unwrap();
        });
        Ok(stream)
    }

    async fn sum(&self, times: u64, mut numbers: Streaming<u64>) -> u64 {
        let mut sum = 0;
        while let Some(Ok(number)) = numbers.next().await {
            sum += number;
        }
        times * sum
    }

    async fn sum_or_fail(&self, mut numbers: Streaming<u64>) -> Result<u64, StoreError> {
        match numbers.next().await {
            Some(Ok(number)) => Ok(number),
            _ => Err(StoreError::Full),
        }
    }

    async fn double(&self, mut numbers: Streaming<u64>) -> Streaming<u64> {
        let (sender, doubled) = Streaming::channel(1);
        tokio::spawn(async move {
            while let Some(Ok(number)) = numbers.next().await {
                sender.send(2 * number).await.unwrap();
            }
        });
        doubled
    }

    async fn names(&self, service: u8, request: u8, result: u8, response: u8, method: u8) -> u8 {
        service + request + result + response + method
    }

    async fn panics(&self) -> u8 {
        panic!("a planted panic")
    }

    async fn time_left(&self) -> Option<Duration> {
        Context::current().deadline.map(|at| at - std::time::Instant::now())
    }

    async fn r#match(&self) -> (u8, String) {
        (1, "one".into())
    }
}

async fn client() -> StoreClient {
    StoreClient::new(serve(StoreServer::new(InMemory::default())).await)
}

#[tokio::test]
async fn calls_return_results_and_typed_errors() {
    let client = client().await;
    client.nothing().await.unwrap();
    assert_eq!(client.get("a".into()).await.unwrap(), None);
    assert_eq!(client.put("a".into(), vec![1; 100]).await.unwrap(), 1);
    assert_eq!(client.get("a".into()).await.unwrap(), Some(vec![1; 100]));
    client.put("b".into(), vec![]).await.unwrap();
    let error = client.put("c".into(), vec![]).await.unwrap_err();
    assert!(matches!(error, ServiceError::Method(StoreError::Full)), "{error:?}");
    assert_eq!(error.execution(), Execution::Executed);
    assert_eq!(client.names(1, 2, 3, 4, 5).await.unwrap(), 15);
    assert_eq!(client.r#match().await.unwrap(), (1, "one".into()));
}

#[tokio::test]
async fn a_panic_in_a_method_is_a_status() {
    let client = client().await;
    assert_eq!(client.panics().await.unwrap_err().code(), Code::Internal);
    client.nothing().await.unwrap();
}

#[tokio::test]
async fn a_timeout_of_the_client_reaches_the_method() {
    let client = client().await;
    assert_eq!(client.time_left().await.unwrap(), None);
    let client = client.with_timeout(Duration::from_secs(500));
    let left = client.time_left().await.unwrap().unwrap();
    assert!(left <= Duration::from_secs(500) && left > Duration::from_secs(100), "{left:?}");
}

#[tokio::test]
async fn streams_of_results_arrive_with_their_errors() {
    let client = client().await;
    let mut list = client.list(0, 10_000).await.unwrap();
    for expected in 0..10_000 {
        assert_eq!(list.next().await.unwrap().unwrap(), expected);
    }
    assert!(list.next().await.is_none());

    let error = client.list_or_fail(true).await.unwrap_err();
    assert!(matches!(error, ServiceError::Method(StoreError::Missing { key }) if key == "k"));
    let mut changes = client.list_or_fail(false).await.unwrap();
    for number in 0..100_u8 {
        let change = changes.next().await.unwrap().unwrap();
        assert_eq!(change, Change { key: number.to_string(), value: Some(vec![number; 2_000]) });
    }
    assert_eq!(changes.next().await.unwrap().unwrap_err().code(), Code::DataLoss);
    assert!(changes.next().await.is_none());
}

#[tokio::test]
async fn streams_of_arguments_arrive_behind_the_others() {
    let client = client().await;
    assert_eq!(client.sum(2, Streaming::from_items(0..1_000)).await.unwrap(), 999_000);
    let (sender, numbers) = Streaming::channel(1);
    let sum = tokio::spawn({
        let client = client.clone();
        async move { client.sum(1, numbers).await }
    });
    for number in 0..100 {
        sender.send(number).await.unwrap();
    }
    drop(sender);
    assert_eq!(sum.await.unwrap().unwrap(), 4_950);
    let error = client.sum_or_fail(Streaming::from_items([])).await.unwrap_err();
    assert!(matches!(error, ServiceError::Method(StoreError::Full)));
    let (_never_ends, numbers) = Streaming::channel(1);
    _never_ends.send(7).await.unwrap();
    assert_eq!(client.sum_or_fail(numbers).await.unwrap(), 7, "the method answers early");
}

#[tokio::test]
async fn streams_in_both_directions_flow_together() {
    let client = client().await;
    let (sender, numbers) = Streaming::channel(1);
    let mut doubled = client.double(numbers).await.unwrap();
    for number in 0..50 {
        sender.send(number).await.unwrap();
        assert_eq!(doubled.next().await.unwrap().unwrap(), 2 * number);
    }
    drop(sender);
    assert!(doubled.next().await.is_none());
}
