/** Answers of the API about one node, as its page reads them. */

/** A node as `GET /v1/nodes/<node>` shows it. What the user may not see has a text that says so. */
export interface NodeDetail {
    uuid: string;
    name: string | null;
    description: string | null;
    provision_state: string;
    target_provision_state: string | null;
    provision_updated_at: string | null;
    power_state: string | null;
    target_power_state: string | null;
    maintenance: boolean;
    maintenance_reason: string | null;
    fault: string | null;
    last_error: string | null;
    reservation: string | null;
    conductor: string | null;
    conductor_group: string;
    driver: string;
    resource_class: string | null;
    instance_uuid: string | null;
    instance_name: string | null;
    allocation_uuid: string | null;
    owner: string | null;
    lessee: string | null;
    shard: string | null;
    parent_node: string | null;
    chassis_uuid: string | null;
    protected: boolean;
    protected_reason: string | null;
    retired: boolean;
    retired_reason: string | null;
    health: string | null;
    boot_mode: string | null;
    secure_boot: boolean | null;
    console_enabled: boolean;
    console_interface: string | null;
    traits: string[];
    properties: Record<string, unknown>;
    extra: Record<string, unknown>;
    driver_info: Record<string, unknown>;
    instance_info: Record<string, unknown>;
    driver_internal_info: Record<string, unknown>;
    raid_config: Record<string, unknown> | null;
    target_raid_config: Record<string, unknown> | null;
    network_data: Record<string, unknown> | null;
    inspection_started_at: string | null;
    inspection_finished_at: string | null;
    created_at: string | null;
    updated_at: string | null;
    [field: string]: unknown;
}

/** Who keeps a node in maintenance, and what that holds back. */
export interface Hold {
    name: string;
    scope: "all" | "provision" | "sync";
    reason: string | null;
    since: string | null;
    user: string | null;
    project: string | null;
    fault: string | null;
    conductor: string | null;
}

/** What a node needs, as Home says of it. */
export interface Triage {
    cause: string;
    title: string;
    since: string | null;
    seconds: number | null;
    reason: string | null;
    step: string | null;
    by: string | null;
    next: { text: string; action: { kind: string; target: string | null } | null };
}

/** Why a node is where it is. */
export interface Explanation {
    kind: string;
    waits_for: string;
    since: string | null;
    until: string | null;
    provision_state: string;
    flow: string | null;
    step: string | null;
    conductor: string | null;
    last_sign: { what: string; at: string } | null;
    next: string;
    advice: string;
    usual_causes: string[];
    notes: string[];
    triage: Triage | null;
    at: string;
    /** When it is different though nothing happens. */
    stale_at: string | null;
}

/** One attempt of a step that has ended or is under way, or a step that is still to come. */
export interface TimelineStep {
    interface: string;
    step: string;
    state: string;
    origin: string | null;
    runner: string | null;
    priority: number | null;
    args: Record<string, unknown>;
    attempt: number;
    started_at: string | null;
    finished_at: string | null;
    duration: number | null;
    usual_duration: number | null;
    conductor: string | null;
    error: string | null;
}

/** A run with its steps. What else lists of runs say is in it only if it was asked for by its id. */
export interface Timeline {
    run: string | null;
    flow: string | null;
    provision_state: string;
    last_error: string | null;
    request_id: string | null;
    global_request_id: string | null;
    steps: TimelineStep[];
}

export interface Run {
    run: string;
    flow: string;
    state: "running" | "done" | "aborted" | "failed";
    started_at: string | null;
    finished_at: string | null;
    duration: number | null;
    steps: number;
    last_error: string | null;
    conductor: string | null;
}

export interface Runs {
    runs: Run[];
    next?: string;
}

export interface AgentLog {
    uuid: string;
    run: string | null;
    flow: string;
    created_at: string;
    size: number;
}

export interface AgentLogs {
    logs: AgentLog[];
    next?: string;
}

export interface HistoryEntry {
    uuid: string;
    created_at: string;
    severity: string;
    event: string;
    event_type: string;
    conductor: string | null;
    user: string | null;
    project: string | null;
    request_id: string | null;
    state: string | null;
    target_provision_state: string | null;
    duration_seconds: number | null;
}

export interface History {
    history: HistoryEntry[];
    next?: string;
}

/** A request that has changed a node, or was refused to. */
export interface AuditEvent {
    id: string;
    event_time: string;
    action: string;
    outcome: "success" | "pending" | "failure";
    reason: { code: number; message: string | null };
    initiator: {
        id: string | null;
        name: string | null;
        project_id: string | null;
        project_name: string | null;
        address: string | null;
    };
    request: { method: string; path: string; target?: string; runbook?: string; fields?: string[] };
    request_id: string;
    global_request_id: string | null;
}

export interface Audit {
    events: AuditEvent[];
    next?: string;
}
