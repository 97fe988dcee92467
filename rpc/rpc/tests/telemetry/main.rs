//! OpenTelemetry spans. A single test, since the tracer is global.

use apus_driver::loopback::LoopbackNetwork;
use apus_rpc::apus::tokio::Endpoint;
use apus_rpc::{BoxFuture, Channel, Code, Handler, Request, Response, Server, Status, telemetry};
use opentelemetry::trace::{SpanId, SpanKind};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};

/// Calls the next server, or fails.
struct Relay(Option<telemetry::Client<Channel>>);

impl Handler for Relay {
    fn service(&self) -> &'static str {
        "test"
    }

    fn call(&self, _: Request) -> BoxFuture<Result<Response, Status>> {
        let next = self.0.clone();
        Box::pin(async move {
            match next {
                Some(next) => {
                    apus_rpc::typed::send(&next, Request::new("test/inner", vec![])).await
                }
                None => Err(Status::new(Code::NotFound, "nothing here")),
            }
        })
    }
}

#[tokio::test]
async fn calls_of_several_servers_are_one_trace() {
    let exporter = InMemorySpanExporter::default();
    let provider = SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build();
    opentelemetry::global::set_tracer_provider(provider);
    let network = LoopbackNetwork::new();
    let on = async || Endpoint::builder().with_driver(Box::new(network.host())).await.unwrap();
    let serve = |endpoint: Endpoint, handler| {
        let to = endpoint.local_addr();
        let server = Server::new(endpoint).add_service(telemetry::server(handler));
        tokio::spawn(server.serve());
        to
    };
    let inner = serve(on().await, Relay(None));
    let next = telemetry::Client::new(Channel::new(on().await, inner));
    let outer = serve(on().await, Relay(Some(next)));
    let client = telemetry::Client::new(Channel::new(on().await, outer));
    let request = Request::new("test/outer", vec![]);
    let status = apus_rpc::typed::send(&client, request).await.unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
    let spans = loop {
        let spans = exporter.get_finished_spans().unwrap();
        if spans.len() == 4 {
            break spans;
        }
        tokio::task::yield_now().await;
    };
    let find = |name: &str, kind: SpanKind| -> &SpanData {
        spans.iter().find(|span| span.name == name && span.span_kind == kind).unwrap()
    };
    let mut parent = SpanId::INVALID;
    for (name, kind) in [
        ("test/outer", SpanKind::Client),
        ("test/outer", SpanKind::Server),
        ("test/inner", SpanKind::Client),
        ("test/inner", SpanKind::Server),
    ] {
        let span = find(name, kind);
        assert_eq!(span.parent_span_id, parent, "{name}");
        assert_eq!(span.span_context.trace_id(), spans[0].span_context.trace_id());
        let has = |key: &str, value: &str| {
            let found = span.attributes.iter().find(|attribute| attribute.key.as_str() == key);
            assert_eq!(found.unwrap().value.as_str(), value, "{name} {key}");
        };
        has("rpc.system", "apus");
        has("rpc.service", "test");
        has("error.type", "NOT_FOUND");
        has("apus.execution", "Executed");
        parent = span.span_context.span_id();
    }
}
