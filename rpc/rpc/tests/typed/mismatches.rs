//! Clients and servers that were built from different services.

use crate::serve;
use apus_rpc::{Body, BoxFuture, Code, Execution, Frame, Handler, Request, Response, Status};
use bytes::Bytes;

mod first {
    #[derive(serde::Serialize, serde::Deserialize)]
    pub(crate) struct Point {
        pub(crate) x: u32,
        pub(crate) y: u32,
    }

    #[apus_rpc::service(name = "Shapes")]
    pub(crate) trait Shapes {
        async fn area(&self, points: Vec<Point>) -> u64;
        async fn same(&self, a: u8) -> u8;
        async fn gone(&self) -> u8;
    }
}

mod second {
    #[derive(serde::Serialize, serde::Deserialize)]
    pub(crate) struct Point {
        pub(crate) x: u32,
        pub(crate) y: u64,
    }

    #[apus_rpc::service(name = "Shapes")]
    pub(crate) trait Shapes {
        async fn added(&self) -> u8;
        async fn area(&self, points: Vec<Point>) -> u64;
        async fn same(&self, another_name: u8) -> u8;
    }

    pub(crate) struct Server;

    impl Shapes for Server {
        async fn added(&self) -> u8 {
            1
        }

        async fn area(&self, _: Vec<Point>) -> u64 {
            unreachable!("not executed")
        }

        async fn same(&self, another_name: u8) -> u8 {
            another_name
        }
    }
}

#[tokio::test]
async fn other_types_deep_inside_and_missing_methods_are_typed_errors() {
    let channel = serve(second::ShapesServer::new(second::Server)).await;
    let client = first::ShapesClient::new(channel);
    let points = vec![first::Point { x: 1, y: 2 }];
    let status = client.area(points).await.unwrap_err();
    assert_eq!(status.code(), Code::FailedPrecondition);
    assert_eq!(status.execution(), Execution::NotExecuted);
    assert!(status.message().contains("Shapes/area"), "{status}");
    let status = client.gone().await.unwrap_err();
    assert_eq!((status.code(), status.execution()), (Code::Unimplemented, Execution::NotExecuted));
    // Methods may be added, and arguments renamed.
    assert_eq!(client.same(7).await.unwrap(), 7);
}

#[tokio::test]
async fn requests_that_are_no_arguments_are_refused() {
    let channel = serve(second::ShapesServer::new(second::Server)).await;
    for lie in [&[][..], &[1, 2], &[7; 100]] {
        let request = Request::new("Shapes/same", Bytes::copy_from_slice(lie));
        let status = channel.call(request).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{lie:?}");
        assert_eq!(status.execution(), Execution::NotExecuted);
    }
}

/// A server that answers every request with the same bytes.
struct Liar(&'static [u8], bool);

impl Handler for Liar {
    fn service(&self) -> &'static str {
        "Shapes"
    }

    fn call(&self, _: Request) -> BoxFuture<Result<Response, Status>> {
        let response = Response::new(Bytes::from_static(self.0)).with_method_error(self.1);
        Box::pin(std::future::ready(Ok(response)))
    }
}

#[tokio::test]
async fn responses_that_are_no_results_are_typed_errors() {
    for liar in [Liar(&[], false), Liar(&[1, 2], false), Liar(&[1], true)] {
        let client = first::ShapesClient::new(serve(liar).await);
        let status = client.same(1).await.unwrap_err();
        assert_eq!((status.code(), status.execution()), (Code::Internal, Execution::Executed));
    }
}

#[apus_rpc::service]
trait Numbers {
    async fn count(&self) -> apus_rpc::Streaming<u32>;
    async fn sum(&self, numbers: apus_rpc::Streaming<u32>) -> u32;
}

struct Counting;

impl Numbers for Counting {
    async fn count(&self) -> apus_rpc::Streaming<u32> {
        apus_rpc::Streaming::from_items(0..3)
    }

    async fn sum(&self, mut numbers: apus_rpc::Streaming<u32>) -> u32 {
        let mut sum = 0;
        while let Some(number) = numbers.next().await {
            match number {
                Ok(number) => sum += number,
                Err(_) => return u32::MAX,
            }
        }
        sum
    }
}

#[tokio::test]
async fn streams_that_lie_about_lengths_end_with_a_status() {
    struct Lying(&'static [u8]);
    impl Handler for Lying {
        fn service(&self) -> &'static str {
            "Numbers"
        }

        fn call(&self, _: Request) -> BoxFuture<Result<Response, Status>> {
            Box::pin(std::future::ready(Ok(Response::new(Bytes::from_static(self.0)))))
        }
    }
    let cases = [
        (&[255, 255, 255, 255, 0][..], Code::ResourceExhausted),
        (&[4, 0, 0, 0, 1], Code::DataLoss),
        (&[1, 0], Code::DataLoss),
        (&[2, 0, 0, 0, 1, 1], Code::InvalidArgument),
    ];
    for (lie, code) in cases {
        let client = NumbersClient::new(serve(Lying(lie)).await);
        let mut numbers = client.count().await.unwrap();
        assert_eq!(numbers.next().await.unwrap().unwrap_err().code(), code, "{lie:?}");
    }
    let channel = serve(NumbersServer::new(Counting)).await;
    // No arguments at all, and a part that is not a number.
    let frames = [Ok(Frame::Data(Bytes::from_static(&[0, 0, 0, 0, 2, 0, 0, 0, 1, 1])))];
    let body = Body::stream(Frames(frames.into_iter()));
    let response = channel.call(Request::new("Numbers/sum", body)).await.unwrap();
    let sum = response.into_body().into_bytes(5).await.unwrap();
    assert_eq!(sum[..], [255, 255, 255, 255, 15]);
    let status = channel.call(Request::new("Numbers/sum", vec![])).await.unwrap_err();
    assert_eq!(
        (status.code(), status.execution()),
        (Code::InvalidArgument, Execution::NotExecuted)
    );
}

struct Frames<I>(I);

impl<I: Iterator<Item = Result<Frame, Status>> + Unpin> futures_core::Stream for Frames<I> {
    type Item = Result<Frame, Status>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        std::task::Poll::Ready(self.0.next())
    }
}

#[cfg(feature = "json")]
mod json {
    mod old {
        #[derive(serde::Serialize, serde::Deserialize)]
        pub(crate) struct Order {
            pub(crate) what: String,
        }

        #[apus_rpc::service(name = "Orders", codec = apus_rpc::Json)]
        pub(crate) trait Orders {
            async fn place(&self, order: Order) -> u32;
        }
    }

    mod new {
        #[derive(serde::Serialize, serde::Deserialize)]
        pub(crate) struct Order {
            pub(crate) what: String,
            #[serde(default)]
            pub(crate) count: Option<u32>,
        }

        #[apus_rpc::service(name = "Orders", codec = apus_rpc::Json)]
        pub(crate) trait Orders {
            async fn place(&self, order: Order) -> u32;
        }

        pub(crate) struct Server;

        impl Orders for Server {
            async fn place(&self, order: Order) -> u32 {
                order.count.unwrap_or(1)
            }
        }
    }

    #[tokio::test]
    async fn types_may_gain_optional_fields_with_a_format_that_describes_itself() {
        let channel = crate::serve(new::OrdersServer::new(new::Server)).await;
        let client = old::OrdersClient::new(channel);
        assert_eq!(client.place(old::Order { what: "coffee".into() }).await.unwrap(), 1);
    }
}
