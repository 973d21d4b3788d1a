/** What keeps a verb from being started. */

interface Hindrances {
    permission: { allowed: boolean; reason: string | null };
    missing: string | null;
    isWrong: boolean;
    isImageChanged: boolean;
}

/** Return why a verb cannot be started now; null: it can. */
export function whyNot({ permission, missing, isWrong, isImageChanged }: Hindrances): string | null {
    if (!permission.allowed) return permission.reason;
    if (missing) return missing;
    if (isWrong) return "Correct the arguments first.";
    return isImageChanged ? "Save the image first." : null;
}
