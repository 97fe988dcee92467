//! Values whose depth, or number of elements, a peer determines.

use crate::serve;
use apus_rpc::typed::Codec;
use apus_rpc::{
    BoxFuture, Channel, Code, Execution, Handler, Postcard, Request, Response, Status, Streaming,
};
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Levels of a value below the list of the arguments.
const MOST: usize = 128;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum Expr {
    Number(i64),
    Negative(Box<Expr>),
    Sum(Box<Expr>, Box<Expr>),
}

impl Expr {
    fn value(&self) -> i64 {
        match self {
            Self::Number(number) => *number,
            Self::Negative(inner) => -inner.value(),
            Self::Sum(one, other) => one.value() + other.value(),
        }
    }
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Link(Option<Box<Link>>);

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Tree(Vec<Tree>);

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Named {
    below: BTreeMap<u8, Named>,
}

#[apus_rpc::service]
trait Calculator {
    async fn value(&self, of: Expr) -> i64;
    async fn last(&self, expressions: Streaming<Expr>) -> Result<i64, String>;
    async fn units(&self, units: Vec<()>) -> usize;
    async fn parsed(&self, text: String) -> Expr;
}

struct Calculating;

impl Calculator for Calculating {
    async fn value(&self, of: Expr) -> i64 {
        of.value()
    }

    async fn last(&self, mut expressions: Streaming<Expr>) -> Result<i64, String> {
        let mut last = 0;
        while let Some(expression) = expressions.next().await {
            last = expression.map_err(|status| status.to_string())?.value();
        }
        Ok(last)
    }

    async fn units(&self, units: Vec<()>) -> usize {
        units.len()
    }

    async fn parsed(&self, text: String) -> Expr {
        Expr::Number(text.parse().unwrap())
    }
}

/// A number in `levels` negations, as bytes.
fn negated(levels: usize) -> Vec<u8> {
    let mut bytes = vec![1; levels];
    bytes.extend([0, 2]);
    bytes
}

/// Calls a method with these arguments as bytes.
async fn call(channel: &Channel, method: &str, bytes: Vec<u8>) -> Result<Bytes, Status> {
    let request = Request::new(format!("Calculator/{method}"), bytes);
    channel.call(request).await?.into_body().into_bytes(1_000).await
}

fn assert_refused(result: Result<Bytes, Status>) {
    let status = result.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument, "{status}");
    assert_eq!(status.execution(), Execution::NotExecuted);
}

#[tokio::test]
async fn arguments_that_nest_too_deep_are_refused_and_the_server_serves_on() {
    let channel = serve(CalculatorServer::new(Calculating)).await;
    // The innermost number is a level, too.
    assert_eq!(call(&channel, "value", negated(MOST - 1)).await.unwrap()[..], [1]);
    for levels in [MOST, MOST + 1, 10_000, 1_000_000] {
        assert_refused(call(&channel, "value", negated(levels)).await);
    }
    // Two levels a byte: the first of two sides nests.
    assert_refused(call(&channel, "value", vec![2; 1_000_000]).await);
    assert_eq!(call(&channel, "value", negated(1)).await.unwrap()[..], [1]);
}

#[tokio::test]
async fn a_part_of_a_stream_that_nests_too_deep_ends_it() {
    let client = CalculatorClient::new(serve(CalculatorServer::new(Calculating)).await);
    let deep =
        |levels| (0..levels).fold(Expr::Number(1), |inner, _| Expr::Negative(Box::new(inner)));
    assert_eq!(client.last(Streaming::from_items([deep(2), deep(MOST)])).await.unwrap(), 1);
    let error = client.last(Streaming::from_items([deep(2), deep(5_000)])).await.unwrap_err();
    assert!(error.to_string().contains("nests deeper than 128"), "{error}");
}

/// A server that answers every request with the same bytes.
struct Liar(Vec<u8>);

impl Handler for Liar {
    fn service(&self) -> &'static str {
        "Calculator"
    }

    fn call(&self, _: Request) -> BoxFuture<Result<Response, Status>> {
        Box::pin(std::future::ready(Ok(Response::new(self.0.clone()))))
    }
}

#[tokio::test]
async fn a_result_that_nests_too_deep_fails_its_call() {
    let client = CalculatorClient::new(serve(Liar(negated(1_000_000))).await);
    let status = client.parsed(String::new()).await.unwrap_err();
    assert_eq!((status.code(), status.execution()), (Code::Internal, Execution::Executed));
}

/// The varint of a length.
fn length(mut length: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while length > 127 {
        bytes.push(length as u8 | 0x80);
        length >>= 7;
    }
    bytes.push(length as u8);
    bytes
}

#[tokio::test]
async fn a_list_of_nothing_is_bounded_by_the_message() {
    let channel = serve(CalculatorServer::new(Calculating)).await;
    assert_eq!(call(&channel, "units", length(3)).await.unwrap()[..], [3]);
    assert_eq!(call(&channel, "units", length(4_096)).await.unwrap()[..], length(4_096)[..]);
    for units in [5_000, 1 << 32, 1 << 60, u64::MAX] {
        assert_refused(call(&channel, "units", length(units)).await);
    }
}

fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    Postcard::decode(bytes).map_err(|error| error.to_string())
}

#[test]
fn every_kind_of_nesting_is_bounded() {
    let levels = 1_000_000;
    let endless = vec![1; levels];
    let refused = [
        decode::<Link>(&endless).err(),
        decode::<Tree>(&endless).err(),
        decode::<Expr>(&endless).err(),
        // A map with one entry, whose key is 1.
        decode::<Named>(&endless).err(),
        decode::<Vec<Named>>(&endless).err(),
    ];
    for error in refused {
        assert_eq!(error.unwrap(), "the value nests deeper than 128");
    }
    let lists = [length(2), length(1 << 59), length(1 << 59)].concat();
    let endless = [
        decode::<Vec<()>>(&length(1 << 60)).err(),
        decode::<Vec<Vec<()>>>(&lists).err(),
        decode::<BTreeMap<(), ()>>(&length(1 << 60)).err(),
    ];
    for error in endless {
        let expected = "the lists have more elements than the message has bytes";
        assert_eq!(error.unwrap(), expected);
    }
}

/// Values within the limits are decoded as by postcard itself, on a small stack.
#[test]
fn values_within_the_limits_are_decoded_on_a_small_stack() {
    let decoded = std::thread::Builder::new().stack_size(1 << 20).spawn(|| {
        let deepest = decode::<Expr>(&negated(MOST)).unwrap();
        assert_eq!(deepest.value(), 1);
        let mut link = Link(None);
        for _ in 0..60 {
            link = Link(Some(Box::new(link)));
        }
        let bytes = Postcard::encode(&link, Vec::new()).unwrap();
        assert_eq!(decode::<Link>(&bytes).unwrap(), link);
        let long = vec![(7_u8, "text".to_owned(), Some(-1_i64), [1_u16; 3]); 10_000];
        let bytes = Postcard::encode(&long, Vec::new()).unwrap();
        assert_eq!(decode::<Vec<(u8, String, Option<i64>, [u16; 3])>>(&bytes).unwrap(), long);
    });
    decoded.unwrap().join().unwrap();
}

#[cfg(feature = "json")]
#[test]
fn json_is_bounded_as_well() {
    let deep = "[".repeat(1_000_000);
    assert!(apus_rpc::Json::decode::<Tree>(deep.as_bytes()).is_err());
}
