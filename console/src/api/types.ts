/** Answers of the API, as far as several pages read them. */

export interface FleetNode {
    uuid: string;
    name: string | null;
    provision_state: string;
    target_provision_state: string | null;
    provision_updated_at: string | null;
    power_state: string | null;
    target_power_state: string | null;
    maintenance: boolean;
    maintenance_reason: string | null;
    fault: string | null;
    last_error: string | null;
    driver: string;
    resource_class: string | null;
    conductor_group: string;
    conductor: string | null;
    reservation: string | null;
    owner: string | null;
    lessee: string | null;
    instance_uuid: string | null;
    instance_name: string | null;
    description: string | null;
    shard: string | null;
    parent_node: string | null;
    protected: boolean;
    retired: boolean;
    created_at: string | null;
    updated_at: string | null;
    locked_at?: string | null;
    flow?: string | null;
}

export interface Fleet {
    total: number;
    matching: number;
    offset: number;
    limit: number;
    nodes: FleetNode[];
}

export interface FilterLanguage {
    keys: { key: string; about: string; values: { value: string; nodes: number | null }[] }[];
}

export interface TriageNode {
    uuid: string;
    name: string | null;
    provision_state: string;
    since: string | null;
    seconds: number | null;
    reason: string | null;
    step: string | null;
    by: string | null;
    next: { text: string; action: { kind: string; target: string | null } | null };
}

export interface TriageGroup {
    cause: "failed" | "overdue" | "unresponsive" | "held" | "waiting" | "maintenance";
    title: string;
    count: number;
    nodes: TriageNode[];
}

export interface Work {
    uuid: string;
    name: string | null;
    provision_state: string;
    flow: string;
    run: string | null;
    step: string | null;
    index: number | null;
    steps: number | null;
    waits_for?: string;
    started_at: string | null;
    run_started_at?: string | null;
    expected_seconds: number | null;
    basis: "node" | "class" | "all" | null;
    progress: number | null;
    eta: string | null;
}

export interface Overview {
    at: string;
    /** When this is different though nothing happens: the next node is stuck then. null: never. */
    stale_at: string | null;
    triage: TriageGroup[];
    work: Work[];
    work_count?: number;
    counts: {
        total: number;
        by_state: Record<string, number>;
        by_conductor: Record<string, number>;
        by_class: Record<string, number>;
    };
}

export interface BulkResult {
    node: string;
    name: string | null;
    accepted: boolean;
    status: number;
    reason: string | null;
}

export interface Bulk {
    action: string;
    dry_run: boolean;
    accepted: number;
    refused: number;
    results: BulkResult[];
}

export interface PlanStep {
    interface: string;
    step: string;
    origin: string;
    runner: string;
    priority: number;
    args: Record<string, unknown>;
    abortable: boolean;
    requires_ramdisk: boolean;
    reboot_requested: boolean;
    presumed: boolean;
}

export interface Plan {
    node_uuid: string;
    flow: string;
    steps: PlanStep[];
    in_band_steps_known: boolean;
    errors: string[];
}
