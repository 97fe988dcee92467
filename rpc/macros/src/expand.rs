//! The code of a service: the trait, its client, and its handler.

use crate::methods::{arguments_type, expand_methods, method_function, wire_name};
use crate::model::{Method, Output, Service};
use crate::setters::option_setters;
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{ItemTrait, ReturnType, TraitItem, Type, parse_quote};

pub(crate) fn expand(service: &Service) -> TokenStream {
    let the_trait = expand_trait(&service.item);
    let checks = expand_checks(service);
    let methods = expand_methods(service);
    let client = expand_client(service);
    let blocking = crate::blocking::expand(service);
    let server = expand_server(service);
    quote! {
        // First, so that the compiler reports a type that cannot be sent here, with a clear
        // message, before other errors.
        const _: () = {
            #checks
        };
        #the_trait
        #client
        #blocking
        #server
        #methods
    }
}

/// The trait: its futures are `Send`, and servers may write them as `async fn`.
fn expand_trait(item: &ItemTrait) -> TokenStream {
    let mut item = item.clone();
    item.supertraits.push(parse_quote!(::core::marker::Send));
    item.supertraits.push(parse_quote!(::core::marker::Sync));
    item.supertraits.push(parse_quote!('static));
    item.colon_token.get_or_insert_with(Default::default);
    for part in &mut item.items {
        let TraitItem::Fn(method) = part else { continue };
        method.sig.asyncness = None;
        let result: Type = match &method.sig.output {
            ReturnType::Default => parse_quote!(()),
            ReturnType::Type(_, result) => (**result).clone(),
        };
        method.sig.output = parse_quote! {
            -> impl ::core::future::Future<Output = #result> + ::core::marker::Send
        };
    }
    quote!(#item)
}

/// Generates a check, at each type, that it can be sent.
fn expand_checks(service: &Service) -> TokenStream {
    let krate = &service.krate;
    let types = service.methods.iter().flat_map(types_of).map(|of| {
        quote_spanned! {of.span()=> let _ = is_message::<#of>; }
    });
    quote! {
        #[allow(dead_code, clippy::extra_unused_type_parameters, reason = "it is there to be compiled")]
        fn all_types_can_be_sent() {
            fn is_message<T: #krate::typed::Message>() {}
            #(#types)*
        }
    }
}

fn types_of(method: &Method) -> impl Iterator<Item = &Type> {
    let arguments = method.arguments.iter().map(|(_, of)| of);
    let stream = method.stream.iter().map(|(_, of)| of);
    arguments.chain(stream).chain([&method.result.value]).chain(&method.result.error)
}

fn expand_client(service: &Service) -> TokenStream {
    let krate = &service.krate;
    let (the_trait, visibility) = (&service.item.ident, &service.item.vis);
    let client = format_ident!("{the_trait}Client");
    let summary = format!("Client of [`{the_trait}`].");
    let methods = service.methods.iter().map(|method| expand_client_method(service, method));
    let notifies = service.methods.iter().any(|method| method.notify);
    // Part of the client rather than of its options: `typed` is below notifications.
    let (field, start) = match notifies {
        true => (
            quote!(notifications: #krate::Notifications,),
            quote!(notifications: ::core::default::Default::default(),),
        ),
        false => (quote!(), quote!()),
    };
    let accessors = notifies.then(|| {
        quote! {
            /// Sets the sender of notifications, which limits and counts them. Clones of a client
            /// share it.
            #[must_use]
            #visibility fn with_notifications(mut self, notifications: #krate::Notifications) -> Self {
                self.notifications = notifications;
                self
            }

            /// Returns the sender of notifications of this client and its clones, which counts
            /// their outcomes.
            #visibility const fn notifications(&self) -> &#krate::Notifications {
                &self.notifications
            }
        }
    });
    let setters = option_setters(service);
    quote! {
        #[doc = #summary]
        ///
        /// Clones are cheap, and any number of tasks may call at the same time.
        #[derive(Clone, Debug)]
        #visibility struct #client<S = #krate::Channel> {
            service: S,
            options: #krate::typed::ClientOptions,
            #field
        }

        #[allow(dead_code, reason = "an application may use a part of what is generated")]
        impl<S: #krate::typed::Service> #client<S> {
            /// Returns a client that sends its calls through `service`: a channel, or layers around
            /// one.
            #visibility fn new(service: S) -> Self {
                Self { service, options: ::core::default::Default::default(), #start }
            }

            #setters

            #accessors

            #(#methods)*
        }
    }
}

fn expand_client_method(service: &Service, method: &Method) -> TokenStream {
    let (krate, codec, visibility) = (&service.krate, &service.codec, &service.item.vis);
    let (name, docs) = (&method.ident, &method.docs);
    let method_fn = method_function(service, method);
    let parameters = method.arguments.iter().map(|(name, of)| quote!(#name: #of));
    let names = method.arguments.iter().map(|(name, _)| name);
    let arguments = arguments_type(method);
    let stream = method.stream.as_ref().map(|(name, of)| quote!(#name: #krate::Streaming<#of>));
    let request = match &method.stream {
        None => quote! {
            #krate::typed::request::<#codec, #arguments>(
                &self.options, #method_fn(), &(#(#names,)*),
            )
        },
        Some((stream, parts)) => quote! {
            #krate::typed::request_with_stream::<#codec, #arguments, #parts>(
                &self.options, #method_fn(), &(#(#names,)*), #stream,
            )
        },
    };
    let Output { value, is_stream, error } = &method.result;
    let returned = if *is_stream { quote!(#krate::Streaming<#value>) } else { quote!(#value) };
    let failure = match error {
        Some(error) => quote!(#krate::ServiceError<#error>),
        None => quote!(#krate::Status),
    };
    let read = match (is_stream, error) {
        (false, None) => quote!(response::<#codec, #value>),
        (false, Some(error)) => quote!(response_or_error::<#codec, #value, #error>),
        (true, None) => quote!(stream::<#codec, #value>),
        (true, Some(error)) => quote!(stream_or_error::<#codec, #value, #error>),
    };
    if method.notify {
        return quote_spanned! {method.span=>
            #(#docs)*
            ///
            /// Returns when the request is sent, without waiting for the response: `notifications`
            /// counts the outcome.
            ///
            /// # Errors
            ///
            /// The status of a request that could not be sent.
            #visibility async fn #name(
                &self, #(#parameters,)*
            ) -> ::core::result::Result<(), #krate::Status> {
                let request = #request?;
                self.notifications.send(&self.service, request).await
            }
        };
    }
    let errors = if error.is_some() {
        "The method's own error, or the status of a failed call. `execution` returns whether it may have been executed."
    } else {
        "The status of a failed call; its `execution` returns whether it may have been executed."
    };
    quote_spanned! {method.span=>
        #(#docs)*
        ///
        /// # Errors
        ///
        #[doc = #errors]
        #visibility async fn #name(
            &self, #(#parameters,)* #stream
        ) -> ::core::result::Result<#returned, #failure> {
            let request = #request?;
            let response = #krate::typed::send(&self.service, request).await?;
            #krate::typed::#read(response).await
        }
    }
}

fn expand_server(service: &Service) -> TokenStream {
    let krate = &service.krate;
    let (the_trait, visibility, wire) = (&service.item.ident, &service.item.vis, &service.name);
    let server = format_ident!("{the_trait}Server");
    let summary = format!("Handler that serves the calls of a [`{the_trait}`].");
    let arms = service.methods.iter().map(|method| expand_arm(service, method));
    quote! {
        #[doc = #summary]
        #visibility struct #server<T> {
            service: ::std::sync::Arc<T>,
        }

        #[allow(dead_code, reason = "an application may use a part of what is generated")]
        impl<T: #the_trait> #server<T> {
            /// Returns a handler for this service.
            #visibility fn new(service: T) -> Self {
                Self::from_arc(::std::sync::Arc::new(service))
            }

            /// Returns a handler for a service that the application shares.
            #visibility const fn from_arc(service: ::std::sync::Arc<T>) -> Self {
                Self { service }
            }
        }

        impl<T: #the_trait> #krate::Handler for #server<T> {
            fn service(&self) -> &str {
                #wire
            }

            fn call(
                &self,
                request: #krate::Request,
            ) -> #krate::BoxFuture<::core::result::Result<#krate::Response, #krate::Status>> {
                let __service = ::std::sync::Arc::clone(&self.service);
                let method = request.method().as_str().rsplit('/').next().unwrap_or_default();
                match method {
                    #(#arms)*
                    _ => ::std::boxed::Box::pin(::core::future::ready(
                        ::core::result::Result::Err(#krate::typed::unknown_method(&request)),
                    )),
                }
            }
        }
    }
}

fn expand_arm(service: &Service, method: &Method) -> TokenStream {
    let (krate, codec, the_trait) = (&service.krate, &service.codec, &service.item.ident);
    let (name, wire) = (&method.ident, wire_name(method));
    let method_fn = method_function(service, method);
    let arguments = arguments_type(method);
    let names: Vec<&Ident> = method.arguments.iter().map(|(name, _)| name).collect();
    let read = match &method.stream {
        None => quote! {
            let (#(#names,)*) =
                #krate::typed::arguments::<#codec, #arguments>(#method_fn(), request).await?;
        },
        Some((stream, parts)) => quote! {
            let ((#(#names,)*), #stream) =
                #krate::typed::arguments_with_stream::<#codec, #arguments, #parts>(
                    #method_fn(), request,
                ).await?;
        },
    };
    let stream = method.stream.iter().map(|(name, _)| name);
    let Output { value, is_stream, error } = &method.result;
    let reply = match (is_stream, error) {
        (false, None) => quote!(reply::<#codec, #value>(&result)),
        (false, Some(error)) => quote!(reply_or_error::<#codec, #value, #error>(&result)),
        (true, None) => quote!(reply_stream::<#codec, #value>(result)),
        (true, Some(error)) => quote!(reply_stream_or_error::<#codec, #value, #error>(result)),
    };
    quote_spanned! {method.span=>
        #wire => ::std::boxed::Box::pin(async move {
            #read
            let result = <T as #the_trait>::#name(&__service, #(#names,)* #(#stream,)*).await;
            #krate::typed::#reply
        }),
    }
}
