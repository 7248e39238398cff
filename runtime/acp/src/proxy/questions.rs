//! Questions to the person as the client understands them, and what its answers mean.

use agent_client_protocol_schema::v1::PermissionOptionKind;
use agent_client_protocol_schema::v1::ToolKind;
use serde_json::Map;
use serde_json::Value;
use serde_json::json;
use tenon_host::front::Decision;
use tenon_host::front::Elicitation;
use tenon_host::front::ElicitationAnswer;
use tenon_host::front::Question;
use tenon_host::front::UserAnswer;
use tenon_protocol::permission::AgentAction;
use tenon_protocol::permission::AgentRequest;
use tenon_protocol::permission::DecisionKind;
use tenon_protocol::permission::PermissionRequest;
use tenon_protocol::permission::Subject;

use crate::permission_options;

/// What the client can do for the person, from its `clientCapabilities`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Abilities {
    /// It shows forms.
    pub forms: bool,
    /// It opens pages.
    pub pages: bool,
    /// It shows notices.
    pub notices: bool,
}

impl Abilities {
    /// Reads what the client says.
    pub fn of(capabilities: &Value) -> Self {
        // Null is the same as nothing; an empty object says that it can.
        let has = |path: [&str; 2]| !capabilities[path[0]][path[1]].is_null();
        Self {
            forms: has(["elicitation", "form"]),
            pages: has(["elicitation", "url"]),
            notices: has(["session", "notices"]),
        }
    }
}

/// The options that a question of ours offers, by what they are called in the answer.
const ALLOW_ONCE: &str = "tenon-allow-once";
const ALLOW_ALWAYS: &str = "tenon-allow-always";
const REJECT: &str = "tenon-reject";

/// What begins the name of a choice in the answer to a question.
const CHOICE: &str = "tenon-choice-";

/// How the ids of calls begin that are made up by the session, because the agent told none; a UUID follows. The
/// agent says nothing more about them.
const MADE_UP: &str = "call-";

/// A question whether something may be done.
#[derive(Debug, Clone, PartialEq)]
pub struct Permission {
    /// `session/request_permission` without the session.
    pub params: Value,
    /// What is permitted from now on if the person says always.
    pub subject: Option<Subject>,
    /// The call that only we know of, and have to say the end of.
    pub own_call: Option<String>,
}

impl Permission {
    /// A question of Tenon or of an extension.
    pub fn of(request: &PermissionRequest) -> Self {
        let Shown { title, kind, input, details } = shown(request);
        let made_up = format!("tenon-{}", uuid::Uuid::new_v4());
        let given = request.tool_call_id().filter(|id| !id.is_empty());
        let call = given.unwrap_or(&made_up).to_owned();
        let mut tool_call = json!({
            "toolCallId": call,
            "title": title,
            "kind": kind,
            "status": "pending",
        });
        if !input.is_null() {
            tool_call["rawInput"] = input;
        }
        if !details.is_empty() {
            let text = json!({ "type": "text", "text": details.join("\n") });
            tool_call["content"] = json!([{ "type": "content", "content": text }]);
        }
        // An extension that wants the person asked wants that every time; what the agent does with its own tools is
        // remembered by the agent.
        let subject = request
            .subject()
            .filter(|subject| matches!(subject, Subject::Tool(_) | Subject::McpTool { .. }));
        let mut options =
            vec![json!({ "optionId": ALLOW_ONCE, "name": "Allow", "kind": "allow_once" })];
        if subject.is_some() {
            let name = "Allow for this session";
            options.push(json!({ "optionId": ALLOW_ALWAYS, "name": name, "kind": "allow_always" }));
        }
        options.push(json!({ "optionId": REJECT, "name": "Deny", "kind": "reject_once" }));
        let is_made_up = |id: &str| uuid::Uuid::parse_str(id).is_ok();
        let own = call == made_up || call.strip_prefix(MADE_UP).is_some_and(is_made_up);
        let params = json!({ "toolCall": tool_call, "options": options });
        Self { params, subject, own_call: own.then_some(call) }
    }
}

/// What the client shows of a request.
struct Shown<'a> {
    title: String,
    kind: ToolKind,
    /// What a tool is called with, or what changes; null for nothing.
    input: Value,
    /// Why it is asked, in words of extensions and of the agent.
    details: Vec<&'a str>,
}

fn shown(request: &PermissionRequest) -> Shown<'_> {
    let (title, kind, input, details) = match request {
        PermissionRequest::CustomTool { tool_name, tool_description, args, .. } => {
            (use_of(tool_name), ToolKind::Other, args.value().clone(), vec![&**tool_description])
        }
        PermissionRequest::Hook { tool_name, tool_args, hook_message, extension_name, .. } => {
            let (tool, extension) = (tool(tool_name), extension(extension_name));
            let title = format!("Use {tool}? {extension} wants you to decide");
            let details = hook_message.as_deref().into_iter().collect();
            (title, kind_of_tool(tool), tool_args.value().clone(), details)
        }
        PermissionRequest::ExtensionManagement { operation, extension_name, .. } => {
            let operation = operation.as_str();
            let extension = extension(extension_name.as_deref().unwrap_or_default());
            let title = format!("Extensions: {operation} {extension}");
            (title, ToolKind::Other, Value::Null, Vec::new())
        }
        PermissionRequest::ExtensionEnvAccess { extension_name, environment_variables } => {
            let names = environment_variables.join(", ");
            let extension = extension(extension_name);
            let title = format!("Let {extension} read {names} from the environment");
            (title, ToolKind::Read, Value::Null, Vec::new())
        }
        PermissionRequest::ExtensionReview { intention, extension_name, path, .. } => {
            let title = format!("Let {} run as it is now", extension(extension_name));
            (title, ToolKind::Execute, path.as_str().into(), vec![&**intention])
        }
        PermissionRequest::Agent(request) => return shown_of_agent(request),
        PermissionRequest::Other(request) => {
            let title = format!("Permit {}", request["kind"].as_str().unwrap_or_default());
            (title, ToolKind::Other, request.clone(), Vec::new())
        }
    };
    Shown { title, kind, input, details: filled(details) }
}

/// A request about one of the agent's own tools that the agent has not asked by itself.
fn shown_of_agent(request: &AgentRequest) -> Shown<'_> {
    let files = |one: &str| match &request.file_names {
        Some(all) => all.join(", "),
        None => one.to_owned(),
    };
    let (title, kind, input, said) = match &request.action {
        AgentAction::Shell { full_command_text, intention, .. } => {
            (format!("Run {full_command_text}"), ToolKind::Execute, Value::Null, intention)
        }
        AgentAction::Write { file_name, intention, diff, .. } => {
            (format!("Write {}", files(file_name)), ToolKind::Edit, diff.as_str().into(), intention)
        }
        AgentAction::Read { path, intention } => {
            (format!("Read {}", files(path)), ToolKind::Read, Value::Null, intention)
        }
        AgentAction::Url { url, intention } => {
            (format!("Fetch {url}"), ToolKind::Fetch, Value::Null, intention)
        }
        AgentAction::Mcp { server_name, tool_name, args, .. } => {
            let title = format!("Use {} of {server_name}", tool(tool_name));
            return Shown {
                title,
                kind: ToolKind::Other,
                input: args.value().clone(),
                details: filled(hook_message(request).collect()),
            };
        }
        AgentAction::CustomTool { tool_name, tool_description, args } => {
            (use_of(tool_name), ToolKind::Other, args.value().clone(), tool_description)
        }
    };
    let details = hook_message(request).chain([said.as_str()]).collect();
    Shown { title, kind, input, details: filled(details) }
}

/// Why an extension wants it to be asked.
fn hook_message(request: &AgentRequest) -> impl Iterator<Item = &str> {
    request.asked_by.iter().filter_map(|by| by.hook_message.as_deref())
}

/// Those that say something.
fn filled(mut details: Vec<&str>) -> Vec<&str> {
    details.retain(|text| !text.is_empty());
    details
}

fn use_of(name: &str) -> String {
    format!("Use the extension tool {}", tool(name))
}

fn tool(name: &str) -> &str {
    if name.is_empty() { "a tool" } else { name }
}

fn extension(name: &str) -> &str {
    if name.is_empty() { "an extension" } else { name }
}

/// Which kind of ACP a tool is, by the name extensions know it by.
fn kind_of_tool(name: &str) -> ToolKind {
    match name {
        "bash" => ToolKind::Execute,
        "edit" | "create" => ToolKind::Edit,
        "view" => ToolKind::Read,
        "grep" | "glob" => ToolKind::Search,
        "web_fetch" => ToolKind::Fetch,
        _ => ToolKind::Other,
    }
}

/// The decision that the client's answer to `session/request_permission` comes to. The answer travels along, for
/// an agent that offered options of its own.
pub fn decision(asked: &Value, answer: &Value) -> Decision {
    let outcome = &answer["outcome"];
    let options = asked["options"].as_array().map(Vec::as_slice).unwrap_or_default();
    let selected = outcome["outcome"] == "selected";
    let chosen = permission_options::chosen(options, outcome).filter(|_| selected);
    let mut decision = match chosen.and_then(permission_options::kind) {
        Some(PermissionOptionKind::AllowOnce) => Decision::approve(),
        Some(PermissionOptionKind::AllowAlways) => Decision::new(DecisionKind::ApproveForSession),
        _ => Decision::reject(None),
    };
    decision.rest.insert("acpOutcome".to_owned(), outcome.clone());
    decision
}

/// A form as `elicitation/create`, without the session; `None` if the client cannot show it.
pub fn elicitation(form: &Elicitation, abilities: Abilities) -> Option<Value> {
    match (form.mode.as_deref(), &form.url) {
        (Some("url"), Some(url)) if abilities.pages => {
            let id = uuid::Uuid::new_v4().to_string();
            Some(json!({ "mode": "url", "elicitationId": id, "url": url, "message": form.message }))
        }
        (None | Some("form"), _) if abilities.forms => {
            let mut schema = form.requested_schema.clone().unwrap_or(Value::Null);
            if !schema.is_object() {
                schema = json!({ "properties": {} });
            }
            schema["type"] = "object".into();
            if let Some(fields) = schema.get_mut("properties").and_then(Value::as_object_mut) {
                fields.values_mut().for_each(title_choices);
            }
            Some(json!({ "mode": "form", "message": form.message, "requestedSchema": schema }))
        }
        _ => None,
    }
}

/// ACP has choices with titles in place of two lists.
fn title_choices(field: &mut Value) {
    let (Some(values), Some(titles)) = (field["enum"].as_array(), field["enumNames"].as_array())
    else {
        return;
    };
    let titled: Vec<_> = values
        .iter()
        .enumerate()
        .map(|(i, value)| json!({ "const": value, "title": titles.get(i).unwrap_or(value) }))
        .collect();
    if let Some(field) = field.as_object_mut() {
        field.remove("enum");
        field.remove("enumNames");
        field.insert("oneOf".to_owned(), titled.into());
    }
}

/// What a filled-in form says. An action that is not known is no consent.
pub fn elicited(answer: &Value) -> ElicitationAnswer {
    let given = answer["action"].as_str().filter(|given| ["accept", "decline"].contains(given));
    let action = given.unwrap_or("cancel");
    let content = answer["content"].as_object().filter(|_| action == "accept").cloned();
    ElicitationAnswer { action: action.to_owned(), content }
}

/// A question as a form.
pub fn question_form(question: &Question) -> Elicitation {
    let mut fields = Map::new();
    let mut required = Vec::new();
    if !question.choices.is_empty() {
        let choice = json!({ "type": "string", "title": "Answer", "enum": question.choices });
        fields.insert("choice".to_owned(), choice);
        if !question.allow_freeform {
            required.push("choice");
        }
    }
    if question.allow_freeform || question.choices.is_empty() {
        let title = if question.choices.is_empty() { "Answer" } else { "Another answer" };
        fields.insert("answer".to_owned(), json!({ "type": "string", "title": title }));
        if question.choices.is_empty() {
            required.push("answer");
        }
    }
    let schema = json!({ "type": "object", "properties": fields, "required": required });
    Elicitation {
        message: question.question.clone(),
        requested_schema: Some(schema),
        mode: None,
        url: None,
        elicitation_source: None,
    }
}

/// What the form of a question was filled in with; what was typed counts for more than what was chosen.
pub fn question_answer(answer: &ElicitationAnswer) -> Option<UserAnswer> {
    let content = answer.content.as_ref()?;
    let text = |field: &str| content.get(field)?.as_str().filter(|text| !text.is_empty());
    let (answer, was_freeform) = match (text("answer"), text("choice")) {
        (Some(typed), _) => (typed, true),
        (None, chosen) => (chosen?, false),
    };
    Some(UserAnswer { answer: answer.to_owned(), was_freeform })
}

/// A question with choices as `session/request_permission`, for a client without forms.
pub fn question_permission(question: &Question) -> Option<Permission> {
    if question.choices.is_empty() {
        return None;
    }
    let call = format!("tenon-{}", uuid::Uuid::new_v4());
    let choice = |(i, choice): (usize, &String)| json!({ "optionId": format!("{CHOICE}{i}"), "name": choice, "kind": "allow_once" });
    let mut options: Vec<_> = question.choices.iter().enumerate().map(choice).collect();
    options.push(json!({ "optionId": REJECT, "name": "No answer", "kind": "reject_once" }));
    let tool_call = json!({
        "toolCallId": call,
        "title": question.question,
        "kind": "other",
        "status": "pending",
    });
    let params = json!({ "toolCall": tool_call, "options": options });
    Some(Permission { params, subject: None, own_call: Some(call) })
}

/// Which of the choices was taken.
pub fn chosen(question: &Question, answer: &Value) -> Option<UserAnswer> {
    let number = answer["outcome"]["optionId"].as_str()?.strip_prefix(CHOICE)?;
    let answer = question.choices.get(number.parse::<usize>().ok()?)?.clone();
    Some(UserAnswer { answer, was_freeform: false })
}

#[cfg(test)]
mod tests {
    use agent_client_protocol_schema::v1::CreateElicitationRequest;
    use agent_client_protocol_schema::v1::RequestPermissionRequest;
    use tenon_protocol::json::Json;
    use tenon_protocol::permission::AskedBy;
    use tenon_protocol::permission::Switch;

    use super::*;

    fn with_session(mut params: Value) -> Value {
        params["sessionId"] = "s".into();
        params
    }

    fn kinds(params: &Value) -> Vec<&str> {
        let options = params["options"].as_array().unwrap();
        options.iter().map(|option| option["kind"].as_str().unwrap()).collect()
    }

    fn selected(option: &str) -> Value {
        json!({ "outcome": { "outcome": "selected", "optionId": option } })
    }

    #[test]
    fn a_client_can_what_it_says() {
        assert_eq!(Abilities::of(&Value::Null), Abilities::default());
        let said =
            json!({ "elicitation": { "form": {}, "url": null }, "session": { "notices": {} } });
        let expected = Abilities { forms: true, pages: false, notices: true };
        assert_eq!(Abilities::of(&said), expected);
    }

    #[test]
    fn a_tool_of_an_extension_can_be_permitted_once_or_for_the_session() {
        let request = PermissionRequest::CustomTool {
            tool_call_id: "toolu_1".to_owned(),
            tool_name: "deploy".to_owned(),
            tool_description: "Ships it".to_owned(),
            args: json!({ "to": "prod" }).into(),
        };
        let asked = Permission::of(&request);
        let call = &asked.params["toolCall"];
        assert_eq!(call["toolCallId"], "toolu_1");
        assert_eq!(call["title"], "Use the extension tool deploy");
        assert_eq!(call["rawInput"], json!({ "to": "prod" }));
        assert_eq!(call["content"][0]["content"]["text"], "Ships it");
        assert_eq!(kinds(&asked.params), ["allow_once", "allow_always", "reject_once"]);
        assert_eq!(asked.subject, Some(Subject::Tool("deploy".to_owned())));
        assert_eq!(asked.own_call, None);
        let known: Result<RequestPermissionRequest, _> =
            serde_json::from_value(with_session(asked.params));
        assert!(known.is_ok(), "{known:?}");
    }

    #[test]
    fn what_widens_an_extensions_reach_is_asked_each_time() {
        let hook = PermissionRequest::Hook {
            tool_call_id: String::new(),
            tool_name: "bash".to_owned(),
            tool_args: Json::default(),
            hook_message: None,
            extension_name: "project:a".to_owned(),
        };
        let manage = PermissionRequest::ExtensionManagement {
            tool_call_id: String::new(),
            operation: Switch::Disable,
            extension_name: Some("project:a".to_owned()),
        };
        let secrets = PermissionRequest::ExtensionEnvAccess {
            extension_name: "project:a".to_owned(),
            environment_variables: vec!["A".to_owned(), "B".to_owned()],
        };
        let review = PermissionRequest::ExtensionReview {
            intention: String::new(),
            extension_name: "project:a".to_owned(),
            path: "/a".to_owned(),
            hash: String::new(),
        };
        let other = PermissionRequest::Other(json!({ "kind": "x" }));
        let titles = [
            (hook, "Use bash? project:a wants you to decide"),
            (manage, "Extensions: disable project:a"),
            (secrets, "Let project:a read A, B from the environment"),
            (review, "Let project:a run as it is now"),
            (other, "Permit x"),
        ];
        for (request, title) in titles {
            let asked = Permission::of(&request);
            assert_eq!(kinds(&asked.params), ["allow_once", "reject_once"], "{title}");
            assert_eq!(asked.subject, None);
            assert_eq!(asked.params["toolCall"]["title"], title);
            assert!(
                asked.own_call.is_some_and(|call| asked.params["toolCall"]["toolCallId"] == *call)
            );
        }
    }

    #[test]
    fn what_the_agent_does_through_us_is_shown_with_all_files_and_who_wants_it_asked() {
        let intention = "tidy up".to_owned();
        let (file_name, diff) = ("a".to_owned(), "+x\n".to_owned());
        let write = AgentAction::Write { file_name, intention, diff, new_file_contents: None };
        let request = AgentRequest {
            file_names: Some(vec!["a".to_owned(), "b".to_owned()]),
            asked_by: Some(AskedBy {
                hook_message: Some("careful".to_owned()),
                extension_name: "project:a".to_owned(),
            }),
            ..AgentRequest::new(write, "c1")
        };
        let asked = Permission::of(&PermissionRequest::Agent(request));
        let call = &asked.params["toolCall"];
        assert_eq!(call["title"], "Write a, b");
        assert_eq!(call["kind"], "edit");
        assert_eq!(call["rawInput"], "+x\n");
        assert_eq!(call["content"][0]["content"]["text"], "careful\ntidy up");
        assert_eq!((asked.subject, asked.own_call), (None, None));
    }

    #[test]
    fn a_call_that_the_agent_did_not_name_is_ours_to_end() {
        let made_up = "call-67e55044-10b1-426f-9247-bb680e5fe0c8";
        for (id, own) in [(made_up, Some(made_up)), ("call-1-2", None)] {
            let request = PermissionRequest::CustomTool {
                tool_call_id: id.to_owned(),
                tool_name: "t".to_owned(),
                tool_description: String::new(),
                args: Json::default(),
            };
            assert_eq!(Permission::of(&request).own_call.as_deref(), own);
        }
    }

    #[test]
    fn an_answer_is_judged_by_the_kind_of_its_option() {
        let asked = json!({ "options": [
            { "optionId": "1", "kind": "allow_once" },
            { "optionId": "2", "kind": "allow_always" },
            { "optionId": "3", "kind": "reject_always" },
            { "optionId": "4", "kind": "from the future" },
            { "kind": "allow_once" },
        ]});
        let kind = |answer: &Value| decision(&asked, answer).kind;
        assert_eq!(kind(&selected("1")), DecisionKind::ApproveOnce);
        assert_eq!(kind(&selected("2")), DecisionKind::ApproveForSession);
        for no in [selected("3"), selected("4"), selected("5"), json!({}), Value::Null] {
            assert_eq!(kind(&no), DecisionKind::Reject, "{no}");
        }
        let cancelled = json!({ "outcome": { "outcome": "cancelled" } });
        assert_eq!(kind(&cancelled), DecisionKind::Reject);
        let raw =
            json!({ "outcome": { "outcome": "selected", "optionId": "1", "_meta": { "x": 1 } } });
        assert_eq!(decision(&asked, &raw).rest["acpOutcome"], raw["outcome"]);
    }

    #[test]
    fn a_form_reaches_a_client_that_shows_forms() {
        let form = Elicitation {
            message: "Where to?".to_owned(),
            requested_schema: Some(json!({
                "type": "object",
                "properties": {
                    "to": { "type": "string", "enum": ["a", "b"], "enumNames": ["A"] },
                    "now": { "type": "boolean" },
                },
                "required": ["to"],
            })),
            mode: None,
            url: None,
            elicitation_source: None,
        };
        assert_eq!(elicitation(&form, Abilities::default()), None);
        let abilities = Abilities { forms: true, ..Abilities::default() };
        let params = elicitation(&form, abilities).unwrap();
        let choices = json!([{ "const": "a", "title": "A" }, { "const": "b", "title": "b" }]);
        let fields = &params["requestedSchema"]["properties"];
        assert_eq!(fields["to"], json!({ "type": "string", "oneOf": choices }));
        let known: Result<CreateElicitationRequest, _> =
            serde_json::from_value(with_session(params));
        assert!(known.is_ok(), "{known:?}");
    }

    #[test]
    fn a_page_is_opened_only_by_a_client_that_opens_pages() {
        let page = Elicitation {
            message: "Log in".to_owned(),
            requested_schema: None,
            mode: Some("url".to_owned()),
            url: Some("https://example.com".to_owned()),
            elicitation_source: None,
        };
        let forms = Abilities { forms: true, ..Abilities::default() };
        assert_eq!(elicitation(&page, forms), None);
        let pages = Abilities { pages: true, ..Abilities::default() };
        let params = elicitation(&page, pages).unwrap();
        assert_eq!(params["url"], "https://example.com");
        let known: Result<CreateElicitationRequest, _> =
            serde_json::from_value(with_session(params));
        assert!(known.is_ok(), "{known:?}");
    }

    #[test]
    fn a_form_that_was_not_accepted_has_no_values() {
        let accepted = elicited(&json!({ "action": "accept", "content": { "to": "a" } }));
        assert_eq!(accepted.content.unwrap()["to"], "a");
        let declined = elicited(&json!({ "action": "decline", "content": { "to": "a" } }));
        assert_eq!((declined.action.as_str(), declined.content), ("decline", None));
        assert_eq!(elicited(&json!({ "action": "later" })).action, "cancel");
    }

    fn question(choices: &[&str], allow_freeform: bool) -> Question {
        let choices = choices.iter().map(|&choice| choice.to_owned()).collect();
        Question { question: "Which?".to_owned(), choices, allow_freeform }
    }

    #[test]
    fn a_question_is_a_form_with_what_may_be_answered() {
        let fields = |question: &Question| {
            let schema = question_form(question).requested_schema.unwrap();
            let names: Vec<_> = schema["properties"].as_object().unwrap().keys().cloned().collect();
            (names, schema["required"].clone())
        };
        assert_eq!(fields(&question(&[], false)), (vec!["answer".to_owned()], json!(["answer"])));
        assert_eq!(
            fields(&question(&["a"], false)),
            (vec!["choice".to_owned()], json!(["choice"]))
        );
        let both = vec!["choice".to_owned(), "answer".to_owned()];
        assert_eq!(fields(&question(&["a"], true)), (both, json!([])));
        let filled = |content: Value| {
            question_answer(&elicited(&json!({ "action": "accept", "content": content })))
        };
        let answer = |answer: &str, was_freeform| {
            Some(UserAnswer { answer: answer.to_owned(), was_freeform })
        };
        assert_eq!(filled(json!({ "choice": "a", "answer": "" })), answer("a", false));
        assert_eq!(filled(json!({ "choice": "a", "answer": "b" })), answer("b", true));
        assert_eq!(filled(json!({})), None);
        assert_eq!(question_answer(&elicited(&json!({ "action": "decline" }))), None);
    }

    #[test]
    fn without_forms_a_question_with_choices_is_a_choice_of_options() {
        assert_eq!(question_permission(&question(&[], true)), None);
        let question = question(&["red", "blue"], true);
        let asked = question_permission(&question).unwrap();
        assert_eq!(kinds(&asked.params), ["allow_once", "allow_once", "reject_once"]);
        let blue = asked.params["options"][1]["optionId"].as_str().unwrap();
        assert_eq!(chosen(&question, &selected(blue)).unwrap().answer, "blue");
        assert_eq!(chosen(&question, &selected(REJECT)), None);
        assert_eq!(chosen(&question, &selected("tenon-choice-9")), None);
        assert_eq!(chosen(&question, &json!({ "outcome": { "outcome": "cancelled" } })), None);
    }
}
